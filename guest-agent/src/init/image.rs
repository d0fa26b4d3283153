//! The guest's image: read-only erofs below an overlay in memory, with the guest's own devices in it.

use std::ffi::CStr;
use std::fs;
use std::path::Path;

use kduel_protocol::{FILES_DIR, GuestImage, IMAGE_ROOT};
use rustix::mount::{MountFlags, mount, mount_bind_recursive};

use crate::clock;

const LOWER: &str = "/kduel/image/lower";
const CHANGES: &str = "/kduel/image/changes";
const OVERLAY: &CStr =
    c"lowerdir=/kduel/image/lower,upperdir=/kduel/image/changes/upper,workdir=/kduel/image/changes/work";

/// Of the guest, seen in the image, too.
const SHARED: [&str; 6] = ["/proc", "/sys", "/dev", "/run", "/tmp", FILES_DIR];

/// How long a driver may take to make the device, in steps of ten milliseconds.
const STEPS: u32 = 1000;

/// Mounts it.
pub fn mount_image(image: &GuestImage) -> Result<(), String> {
    let device = Path::new(&image.device);
    for _ in 0..STEPS {
        if device.exists() {
            break;
        }
        clock::sleep_ms(10);
    }
    let make = |path: &str| {
        fs::create_dir_all(path).map_err(|error| format!("making folder {path}: {error}"))
    };
    make(LOWER)?;
    make(CHANGES)?;
    let read_only = MountFlags::RDONLY | MountFlags::NOATIME;
    attach(&image.device, LOWER, "erofs", read_only, c"")?;
    attach("image", CHANGES, "tmpfs", MountFlags::empty(), c"mode=0755,size=90%")?;
    make(&format!("{CHANGES}/upper"))?;
    make(&format!("{CHANGES}/work"))?;
    // Only now: that it is there says that there is an image.
    make(IMAGE_ROOT)?;
    let mounted = attach("image", IMAGE_ROOT, "overlay", MountFlags::NOATIME, OVERLAY);
    let shared = mounted.and_then(|()| SHARED.iter().try_for_each(|path| share(path)));
    shared.inspect_err(|_| _ = fs::remove_dir(IMAGE_ROOT))
}

fn attach(
    source: &str,
    target: &str,
    kind: &str,
    flags: MountFlags,
    options: &CStr,
) -> Result<(), String> {
    mount(source, target, kind, flags, options)
        .map_err(|error| format!("mounting the image: {kind} of {source} at {target}: {error}"))
}

fn share(path: &str) -> Result<(), String> {
    let inside = format!("{IMAGE_ROOT}{path}");
    fs::create_dir_all(&inside).map_err(|error| format!("making folder {inside}: {error}"))?;
    mount_bind_recursive(path, &inside)
        .map_err(|error| format!("showing {path} in the image: {error}"))
}
