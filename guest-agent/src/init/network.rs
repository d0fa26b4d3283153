//! The guest's one network: QEMU's user network, always with the same addresses.

use std::fs;
use std::net::Ipv4Addr;

use crate::clock;
use crate::sys;

const ADDRESS: Ipv4Addr = Ipv4Addr::new(10, 0, 2, 15);
const MASK: Ipv4Addr = Ipv4Addr::new(255, 255, 255, 0);
const GATEWAY: Ipv4Addr = Ipv4Addr::new(10, 0, 2, 2);
const HOST_NAME: &str = "kduel";

/// How long a network device may take to appear, in milliseconds.
const DEVICE_WAIT_MS: u64 = 10_000;
const POLL_MS: u64 = 10;

/// Names the guest and brings up the loopback.
pub fn loopback() -> Result<(), String> {
    rustix::system::sethostname(HOST_NAME.as_bytes())
        .map_err(|error| format!("setting the host name: {error}"))?;
    sys::link_up("lo").map_err(|error| format!("bringing up lo: {error}"))
}

/// Brings up the loopback and the first Ethernet device.
pub fn bring_up() -> Result<(), String> {
    loopback()?;
    let device = device().ok_or_else(|| {
        format!(
            "no network device appeared within {} s: is its driver built in or among the modules?",
            DEVICE_WAIT_MS / 1000
        )
    })?;
    sys::set_address(&device, ADDRESS, MASK)
        .and_then(|()| sys::link_up(&device))
        .and_then(|()| sys::default_route(GATEWAY))
        .map_err(|error| format!("bringing up {device}: {error}"))
}

/// The first Ethernet device, waited for.
fn device() -> Option<String> {
    for _ in 0..DEVICE_WAIT_MS / POLL_MS {
        if let Some(device) = ethernet_devices().into_iter().next() {
            return Some(device);
        }
        clock::sleep_ms(POLL_MS);
    }
    None
}

/// Devices with a bus device behind them (not bonds, tunnels, dummies) and Ethernet's ARP type.
fn ethernet_devices() -> Vec<String> {
    let Ok(entries) = fs::read_dir("/sys/class/net") else { return Vec::new() };
    let mut names: Vec<String> = entries
        .flatten()
        .filter(|entry| {
            let is_ethernet =
                fs::read_to_string(entry.path().join("type")).is_ok_and(|kind| kind.trim() == "1");
            is_ethernet && entry.path().join("device").exists()
        })
        .map(|entry| entry.file_name().to_string_lossy().into_owned())
        .collect();
    names.sort();
    names
}
