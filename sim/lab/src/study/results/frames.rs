//! A file of lines in compressed frames. Each frame is complete by itself, so a file can be appended to, and two files can
//! be joined, byte for byte. A frame that was cut off at the end is ignored.

use std::io;

use zstd::zstd_safe::find_frame_compressed_size;

/// The level of the compression. A higher one takes time from the runs.
const LEVEL: i32 = 3;

/// The first bytes of a frame.
const MAGIC: [u8; 4] = [0x28, 0xb5, 0x2f, 0xfd];

/// Compresses lines to a frame.
pub(super) fn frame(lines: &[u8]) -> io::Result<Vec<u8>> {
    zstd::encode_all(lines, LEVEL)
}

/// Calls `take` with the lines of each frame, and returns the number of bytes of the complete frames. Everything behind
/// them is the beginning of one frame, which a killed process did not finish.
///
/// # Errors
/// Returns an error of the kind [`io::ErrorKind::InvalidData`] if the file has something else, and any error of `take`.
pub(super) fn read(file: &[u8], mut take: impl FnMut(&str) -> io::Result<()>) -> io::Result<usize> {
    let mut rest = file;
    while let Some((frame, behind)) = split(rest)? {
        let lines = zstd::decode_all(frame).map_err(|_| damaged(file, rest))?;
        take(std::str::from_utf8(&lines).map_err(|_| damaged(file, rest))?)?;
        rest = behind;
    }
    Ok(file.len() - rest.len())
}

/// Splits off the first frame. Returns `None` if there is no complete one.
fn split(bytes: &[u8]) -> io::Result<Option<(&[u8], &[u8])>> {
    match find_frame_compressed_size(bytes) {
        Ok(len) => Ok(bytes.split_at_checked(len)),
        Err(_) if bytes.iter().zip(MAGIC).all(|(byte, magic)| *byte == magic) => Ok(None),
        Err(_) => Err(damaged(bytes, bytes)),
    }
}

fn damaged(file: &[u8], rest: &[u8]) -> io::Error {
    let at = file.len() - rest.len();
    let why = format!("the frame at byte {at} is damaged");
    io::Error::new(io::ErrorKind::InvalidData, why)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn lines(file: &[u8]) -> io::Result<(String, usize)> {
        let mut text = String::new();
        let len = read(file, |lines| {
            text += lines;
            Ok(())
        })?;
        Ok((text, len))
    }

    #[test]
    fn a_file_that_is_cut_anywhere_has_its_complete_frames() {
        let one = frame(b"one\n").unwrap();
        let file = [one.clone(), frame(b"two\nthree\n").unwrap()].concat();
        for len in 0..file.len() {
            let (text, valid) = lines(&file[..len]).unwrap();
            let is_one_there = one.len() <= len;
            assert_eq!(text, if is_one_there { "one\n" } else { "" }, "{len}");
            assert_eq!(valid, if is_one_there { one.len() } else { 0 }, "{len}");
        }
        let whole = ("one\ntwo\nthree\n".to_owned(), file.len());
        assert_eq!(lines(&file).unwrap(), whole);
    }

    #[test]
    fn what_is_no_frame_is_told() {
        let mut file = frame(b"one\n").unwrap();
        file.extend(b"{}");
        let error = lines(&file).unwrap_err();
        assert_eq!(error.kind(), io::ErrorKind::InvalidData);
        assert!(lines(b"{\"cell\":1}\n").is_err());
    }
}
