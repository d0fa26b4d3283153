//! The SSH server, and the proof that it can be reached.

use std::fs;
use std::process::Child;

use crate::{clock, process};

const SERVER: &str = "/usr/sbin/dropbear";
const HOST_KEY: &str = "/etc/dropbear/host_key";
const ARGUMENTS: [&str; 11] =
    ["-F", "-E", "-s", "-j", "-k", "-r", HOST_KEY, "-p", "22", "-W", "1048576"];
const PORT: u16 = 22;

/// How long the server may take to listen, in milliseconds.
const LISTEN_WAIT_MS: u64 = 60_000;
const POLL_MS: u64 = 10;

/// Starts the server and waits until it listens.
pub fn start() -> Result<Child, String> {
    let mut server = process::ssh_server(SERVER, &ARGUMENTS)
        .map_err(|error| format!("starting {SERVER}: {error}"))?;
    for _ in 0..LISTEN_WAIT_MS / POLL_MS {
        if is_listening() {
            return Ok(server);
        }
        if let Ok(Some(status)) = server.try_wait() {
            return Err(format!("{SERVER} ended before it listened: {status}"));
        }
        clock::sleep_ms(POLL_MS);
    }
    Err(format!("{SERVER} did not listen on port {PORT} within {} s", LISTEN_WAIT_MS / 1000))
}

fn is_listening() -> bool {
    ["/proc/net/tcp", "/proc/net/tcp6"]
        .iter()
        .filter_map(|table| fs::read_to_string(table).ok())
        .any(|table| has_listener(&table, PORT))
}

/// Whether a socket table of the kernel has a listening socket on `port`.
fn has_listener(table: &str, port: u16) -> bool {
    const LISTEN: &str = "0A";
    let wanted = format!(":{port:04X}");
    table.lines().skip(1).any(|line| {
        let mut fields = line.split_whitespace().skip(1);
        let local = fields.next().unwrap_or_default();
        local.ends_with(&wanted) && fields.nth(1) == Some(LISTEN)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    const TABLE: &str = "  sl  local_address rem_address   st tx_queue rx_queue\n\
         0: 00000000:0016 00000000:0000 0A 00000000:00000000\n\
         1: 0100007F:1F90 0100007F:0016 01 00000000:00000000\n";

    #[test]
    fn only_a_listening_socket_counts() {
        assert!(has_listener(TABLE, 22));
        assert!(!has_listener(TABLE, 8080), "established, not listening");
        assert!(!has_listener(TABLE, 0x0160));
    }
}
