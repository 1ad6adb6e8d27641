//! The `nuncio` binary.

#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

fn main() -> std::process::ExitCode {
    // The allocator asks for huge pages. Here they only keep memory that is not used: an idle server holds a third more with them. A
    // kernel that does not know the call loses nothing else.
    #[cfg(target_os = "linux")]
    let _ = rustix::thread::disable_transparent_huge_pages(true);
    nuncio::cli::main()
}
