//! How the shared library is linked. `nodelete` prevents unloading: threads of a pool run its code,
//! and `fork` calls one of its handlers.

fn main() {
    println!("cargo:rerun-if-changed=build.rs");
    println!("cargo:rustc-cdylib-link-arg=-Wl,-soname,libbywash-levels.so.1");
    println!("cargo:rustc-cdylib-link-arg=-Wl,-z,nodelete");
}
