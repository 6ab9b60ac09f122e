//! Sets linker options of the shared library. The option `nodelete` prevents the library from being
//! unloaded, because its thread and its `fork` handlers run its code. Apache unloads modules when
//! it reads its configuration a second time.

fn main() {
    println!("cargo:rerun-if-changed=build.rs");
    println!("cargo:rustc-cdylib-link-arg=-Wl,-soname,libbywash-sentry.so.1");
    println!("cargo:rustc-cdylib-link-arg=-Wl,-z,nodelete");
}
