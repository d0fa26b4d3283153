//! Lets the plugin's calls into QEMU stay open until QEMU loads it.

fn main() {
    println!("cargo::rustc-cdylib-link-arg=-Wl,-z,undefs");
    println!("cargo::rerun-if-changed=build.rs");
}
