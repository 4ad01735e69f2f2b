//! The command `quorlock`. `quorlock --help` says what it does.

fn main() -> std::process::ExitCode {
    quorlock_cli::main()
}
