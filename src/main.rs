//! The `tidegate` program; everything it does lives in the library.

fn main() -> std::process::ExitCode {
    tidegate::cli::main()
}
