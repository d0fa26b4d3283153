//! The keys of one boot: made here, handed to the guest, so that neither side ever asks whether the
//! other is the right one.

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use ed25519_dalek::SigningKey;
use rustix::rand::{GetRandomFlags, getrandom};

use crate::boot::SshIdentity;
use crate::fault::{Failure, FailureClass};

const KEY_TYPE: &[u8] = b"ssh-ed25519";

/// Two fresh Ed25519 pairs: the identity for our side of the connection, and the guest's host key
/// in dropbear's own file format.
///
/// # Errors
/// If the system gives no random bytes.
pub fn generate() -> Result<(SshIdentity, Vec<u8>), Failure> {
    let host = SigningKey::from_bytes(&random()?);
    let client = SigningKey::from_bytes(&random()?);
    let check = u32::from_be_bytes(random()?);
    let identity = SshIdentity {
        host_key_blob: public_blob(&host),
        client_private_pem: openssh_pem(&client, check),
        client_public_line: format!(
            "ssh-ed25519 {} kduel\n",
            STANDARD.encode(public_blob(&client))
        ),
    };
    Ok((identity, dropbear_file(&host)))
}

fn random<const N: usize>() -> Result<[u8; N], Failure> {
    let mut bytes = [0; N];
    let filled = getrandom(&mut bytes, GetRandomFlags::empty());
    if filled == Ok(N) {
        return Ok(bytes);
    }
    Err(Failure::new(FailureClass::HostIo, "failed to get random bytes for SSH keys"))
}

/// RFC 4251 `string`: length and bytes. Everything written here is far shorter than 4 GiB.
fn put(buffer: &mut Vec<u8>, bytes: &[u8]) {
    buffer.extend(u32::try_from(bytes.len()).unwrap_or(u32::MAX).to_be_bytes());
    buffer.extend(bytes);
}

/// RFC 8709's public key.
fn public_blob(key: &SigningKey) -> Vec<u8> {
    let mut blob = Vec::new();
    put(&mut blob, KEY_TYPE);
    put(&mut blob, key.verifying_key().as_bytes());
    blob
}

/// The type, then seed and public key as one string.
fn dropbear_file(key: &SigningKey) -> Vec<u8> {
    let mut file = Vec::new();
    put(&mut file, KEY_TYPE);
    put(&mut file, &key.to_keypair_bytes());
    file
}

/// OpenSSH's `openssh-key-v1`, not encrypted. `check` is any number; it is there twice so that a
/// wrong passphrase would show.
fn openssh_pem(key: &SigningKey, check: u32) -> String {
    let mut private = Vec::new();
    private.extend(check.to_be_bytes());
    private.extend(check.to_be_bytes());
    put(&mut private, KEY_TYPE);
    put(&mut private, key.verifying_key().as_bytes());
    put(&mut private, &key.to_keypair_bytes());
    put(&mut private, b"kduel");
    private.extend((1..8).take(private.len().next_multiple_of(8) - private.len()));

    let mut all = b"openssh-key-v1\0".to_vec();
    put(&mut all, b"none");
    put(&mut all, b"none");
    put(&mut all, b"");
    all.extend(1_u32.to_be_bytes());
    put(&mut all, &public_blob(key));
    put(&mut all, &private);

    let encoded = STANDARD.encode(all);
    let mut pem = String::from("-----BEGIN OPENSSH PRIVATE KEY-----\n");
    for (i, c) in encoded.chars().enumerate() {
        if i > 0 && i % 70 == 0 {
            pem.push('\n');
        }
        pem.push(c);
    }
    pem.push_str("\n-----END OPENSSH PRIVATE KEY-----\n");
    pem
}

#[cfg(test)]
#[expect(clippy::disallowed_methods, reason = "the test starts a dropbear of its own")]
mod tests {
    use super::*;
    use std::net::{TcpListener, TcpStream};
    use std::path::Path;
    use std::process::{Child, Command, Stdio};
    use std::time::Duration;

    #[test]
    fn every_boot_has_keys_of_its_own() {
        let (one, host_one) = generate().unwrap();
        let (two, host_two) = generate().unwrap();
        assert_ne!(one.client_private_pem, two.client_private_pem);
        assert_ne!(host_one, host_two);
        assert_ne!(one.host_key_blob, public_blob_of_line(&one.client_public_line));
        assert_eq!(one.host_key_blob.len(), 4 + 11 + 4 + 32);
        assert_eq!(host_one.len(), 4 + 11 + 4 + 64);
    }

    fn public_blob_of_line(line: &str) -> Vec<u8> {
        STANDARD.decode(line.split(' ').nth(1).unwrap()).unwrap()
    }

    struct Killed(Child);

    impl Drop for Killed {
        fn drop(&mut self) {
            let _ = self.0.kill();
            let _ = self.0.wait();
        }
    }

    fn connect(port: u16) -> TcpStream {
        for _ in 0..100 {
            if let Ok(stream) = TcpStream::connect(("127.0.0.1", port)) {
                return stream;
            }
            std::thread::sleep(Duration::from_millis(50));
        }
        panic!("dropbear does not listen");
    }

    /// Dropbear with `authorized_keys` in root's home, over which it has a tmpfs of its own.
    const SERVER: &str = "mount -t tmpfs -o mode=700 none /root && mkdir -m 700 /root/.ssh && \
                          cp \"$1/authorized_keys\" /root/.ssh/ && \
                          exec dropbear -F -E -s -p \"127.0.0.1:$2\" -r \"$1/host_key\"";

    /// Dropbear reads the host key, ssh2 the client key, and each accepts the other's.
    #[test]
    fn dropbear_and_ssh2_accept_each_others_keys() {
        let dropbear = Path::new("/usr/sbin/dropbear");
        if !dropbear.exists() || !rustix::process::geteuid().is_root() {
            eprintln!("skipped: needs dropbear, and root to give it a home folder of its own");
            return;
        }
        let (identity, host_key) = generate().unwrap();
        let dir = tempfile::tempdir().unwrap();
        std::fs::write(dir.path().join("host_key"), host_key).unwrap();
        std::fs::write(dir.path().join("authorized_keys"), &identity.client_public_line).unwrap();
        let port = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port();
        let child = Command::new("unshare")
            .args(["--mount", "sh", "-c", SERVER, "sh"])
            .arg(dir.path())
            .arg(port.to_string())
            .stdin(Stdio::null())
            .stderr(Stdio::null())
            .spawn()
            .unwrap();
        let _child = Killed(child);

        let mut session = ssh2::Session::new().unwrap();
        session.set_tcp_stream(connect(port));
        session.set_timeout(10_000);
        session.handshake().unwrap();
        assert_eq!(session.host_key().unwrap().0, identity.host_key_blob);
        session.userauth_pubkey_memory("root", None, &identity.client_private_pem, None).unwrap();
        assert!(session.authenticated());

        let mut stranger = ssh2::Session::new().unwrap();
        stranger.set_tcp_stream(connect(port));
        stranger.set_timeout(10_000);
        stranger.handshake().unwrap();
        let other = generate().unwrap().0.client_private_pem;
        assert!(stranger.userauth_pubkey_memory("root", None, &other, None).is_err());
    }
}
