//! How the shared library is linked. `nodelete`: threads of a pool run its code, and `fork` calls a
//! handler of it, so it must not be unloaded.

fn main() {
    println!("cargo:rerun-if-changed=build.rs");
    println!("cargo:rustc-cdylib-link-arg=-Wl,-soname,libbywash-levels.so.1");
    println!("cargo:rustc-cdylib-link-arg=-Wl,-z,nodelete");
}
