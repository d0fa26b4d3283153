//! Interface addresses and routes by ioctl.

use std::io;
use std::net::Ipv4Addr;
use std::os::fd::{AsRawFd, OwnedFd};

use rustix::net::{AddressFamily, SocketType};

use super::check;

fn socket() -> io::Result<OwnedFd> {
    Ok(rustix::net::socket(AddressFamily::INET, SocketType::DGRAM, None)?)
}

fn request(interface: &str) -> io::Result<libc::ifreq> {
    // SAFETY: all-zero is a valid ifreq.
    let mut request: libc::ifreq = unsafe { std::mem::zeroed() };
    if interface.len() >= request.ifr_name.len() {
        return Err(io::Error::from(io::ErrorKind::InvalidInput));
    }
    for (to, from) in request.ifr_name.iter_mut().zip(interface.bytes()) {
        *to = from.cast_signed();
    }
    Ok(request)
}

fn sockaddr(address: Ipv4Addr) -> libc::sockaddr {
    // SAFETY: all-zero is a valid sockaddr.
    let mut generic: libc::sockaddr = unsafe { std::mem::zeroed() };
    #[expect(clippy::cast_possible_truncation, reason = "AF_INET is 2")]
    {
        generic.sa_family = libc::AF_INET as libc::sa_family_t;
    }
    // As in sockaddr_in: two bytes of port, four of address.
    for (to, from) in generic.sa_data[2..6].iter_mut().zip(address.octets()) {
        *to = from.cast_signed();
    }
    generic
}

/// Brings an interface up.
pub fn link_up(interface: &str) -> io::Result<()> {
    let socket = socket()?;
    let mut request = request(interface)?;
    // SAFETY: SIOCGIFFLAGS fills in, SIOCSIFFLAGS reads, the flags of this valid ifreq.
    unsafe {
        check(libc::ioctl(socket.as_raw_fd(), libc::SIOCGIFFLAGS, &raw mut request))?;
        #[expect(clippy::cast_possible_truncation, reason = "IFF_UP is 1")]
        {
            request.ifr_ifru.ifru_flags |= libc::IFF_UP as libc::c_short;
        }
        check(libc::ioctl(socket.as_raw_fd(), libc::SIOCSIFFLAGS, &raw mut request))?;
    }
    Ok(())
}

/// Gives an interface its address.
pub fn set_address(interface: &str, address: Ipv4Addr, mask: Ipv4Addr) -> io::Result<()> {
    let socket = socket()?;
    let mut request = request(interface)?;
    for (call, value) in [(libc::SIOCSIFADDR, address), (libc::SIOCSIFNETMASK, mask)] {
        request.ifr_ifru.ifru_addr = sockaddr(value);
        // SAFETY: both calls read the address of this valid ifreq.
        check(unsafe { libc::ioctl(socket.as_raw_fd(), call, &raw mut request) })?;
    }
    Ok(())
}

/// Sends what has no better route to `gateway`.
pub fn default_route(gateway: Ipv4Addr) -> io::Result<()> {
    let socket = socket()?;
    // SAFETY: all-zero is a valid rtentry: no device name, destination and mask 0.0.0.0.
    let mut route: libc::rtentry = unsafe { std::mem::zeroed() };
    route.rt_dst = sockaddr(Ipv4Addr::UNSPECIFIED);
    route.rt_genmask = sockaddr(Ipv4Addr::UNSPECIFIED);
    route.rt_gateway = sockaddr(gateway);
    route.rt_flags = libc::RTF_UP | libc::RTF_GATEWAY;
    // SAFETY: SIOCADDRT reads a valid rtentry.
    check(unsafe { libc::ioctl(socket.as_raw_fd(), libc::SIOCADDRT, &raw mut route) })?;
    Ok(())
}
