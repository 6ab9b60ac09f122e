//! Sets linker options of the shared library. The option `nodelete` prevents the library from being
//! unloaded, because the threads of a pool run its code, and `fork` calls one of its functions.

fn main() {
    println!("cargo:rerun-if-changed=build.rs");
    println!("cargo:rustc-cdylib-link-arg=-Wl,-soname,libbywash-levels.so.1");
    println!("cargo:rustc-cdylib-link-arg=-Wl,-z,nodelete");
}
