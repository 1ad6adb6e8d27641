//! The `nuncio` binary.

#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

fn main() -> std::process::ExitCode {
    // Transparent huge pages only waste memory here: an idle server uses a third more with them. Harmless on kernels that do not support
    // the call.
    #[cfg(target_os = "linux")]
    let _ = rustix::thread::disable_transparent_huge_pages(true);
    nuncio::cli::main()
}
