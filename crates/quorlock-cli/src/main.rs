//! The command `quorlock`. `quorlock --help` documents it.

fn main() -> std::process::ExitCode {
    quorlock_cli::main()
}
