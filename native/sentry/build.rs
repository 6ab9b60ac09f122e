//! How the shared library is linked. `nodelete`: its thread and its handlers of `fork` must not
//! be unloaded, as Apache does with modules when it reads its configuration a second time.

fn main() {
    println!("cargo:rerun-if-changed=build.rs");
    println!("cargo:rustc-cdylib-link-arg=-Wl,-soname,libbywash-sentry.so.1");
    println!("cargo:rustc-cdylib-link-arg=-Wl,-z,nodelete");
}
