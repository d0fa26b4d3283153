//! Where a build sees its source: at one path on every host, so that the same source gives the same
//! kernel and objects fit whoever builds on. The path exists for the build's own processes only.

use std::fs;
use std::io;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::time::Duration;

use super::broken;
use crate::fault::{Failure, FailureClass};
use crate::host::tool::{Tool, ToolOutput};

/// How a build gets its tree to that path.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Way {
    /// Layers over one another, mounted as root.
    Root,
    /// The same within a user namespace of our own.
    User,
    /// Not at all: a copy of the tree is built where it lies.
    Copy,
}

/// The folder of one build: `upper` has what it adds to the layers below, or the whole tree if it is a
/// copy; `out` what it hands over.
pub struct Room {
    dir: PathBuf,
    layers: Vec<PathBuf>,
    way: Way,
}

const MOUNT: &str = r#"
exec 2>&1
set -eu
umask 022
room=$1 options=$2 layers=$3
shift 3
mount -t tmpfs -o mode=755 kduel /usr/src
mkdir /usr/src/linux /usr/src/.room
mount --bind "$room" /usr/src/.room
lower=
while [ "$layers" -gt 0 ]; do
	mkdir "/usr/src/.$layers"
	mount --bind "$1" "/usr/src/.$layers"
	lower=/usr/src/.$layers${lower:+:$lower}
	layers=$((layers - 1))
	shift
done
options=${options}lowerdir=$lower,upperdir=/usr/src/.room/upper,workdir=/usr/src/.room/work
mount -t overlay -o "$options" kduel /usr/src/linux
room=/usr/src/.room
cd /usr/src/linux
"#;

const COPY: &str = r#"
exec 2>&1
set -eu
umask 022
room=$1
shift
cd "$room/upper"
"#;

/// What a build would else take from the clock, the host and the user is fixed.
const WORK: &str = r#"
tr '\n' '\0' <"$room/removed" | xargs -0 -r rm -f --
if [ -e "$room/config" ]; then mv "$room/config" .config; fi
exec env -i PATH="$PATH" HOME=/nonexistent LC_ALL=C ROOM="$room" \
	KBUILD_BUILD_TIMESTAMP='Thu Jan  1 00:00:00 UTC 1970' KBUILD_BUILD_VERSION=1 \
	KBUILD_BUILD_USER=kduel KBUILD_BUILD_HOST=kduel "$@"
"#;

impl Room {
    /// Over `layers`, the lowest first, in the empty folder `dir`.
    ///
    /// # Errors
    /// If it cannot be made; a copy takes a while.
    pub fn new(dir: &Path, layers: &[PathBuf], way: Way) -> Result<Self, Failure> {
        let dir = dir.to_owned();
        for name in ["upper", "work", "out"] {
            let path = dir.join(name);
            fs::create_dir(&path).map_err(|error| broken("make folder", &path, &error))?;
        }
        let removed = dir.join("removed");
        fs::write(&removed, "").map_err(|error| broken("write", &removed, &error))?;
        let room = Self { dir, layers: layers.to_vec(), way };
        if way == Way::Copy {
            room.copy()?;
        }
        Ok(room)
    }

    /// The way that works for layers in `folder`, found by trying.
    pub fn way(folder: &Path) -> Result<Way, Failure> {
        for way in [Way::Root, Way::User] {
            let dir =
                tempfile::tempdir_in(folder).map_err(|error| broken("write", folder, &error))?;
            let below = dir.path().join("below");
            fs::create_dir(&below).map_err(|error| broken("make folder", &below, &error))?;
            let file = below.join("file");
            fs::write(&file, "").map_err(|error| broken("write", &file, &error))?;
            let trial = dir.path().join("room");
            fs::create_dir(&trial).map_err(|error| broken("make folder", &trial, &error))?;
            let room = Self::new(&trial, &[below], way)?;
            let works = room.run(&["rm", "file"]).is_ok_and(|output| output.status.success());
            clear(&trial);
            if works {
                return Ok(way);
            }
        }
        Ok(Way::Copy)
    }

    /// The folder with what the build adds.
    pub fn upper(&self) -> PathBuf {
        self.dir.join("upper")
    }

    /// Where the build puts what it hands over: `$ROOM/out` for its commands.
    pub fn out(&self) -> PathBuf {
        self.dir.join("out")
    }

    /// Files of the tree that the first command removes before it begins.
    ///
    /// # Errors
    /// If they cannot be noted down.
    pub fn remove(&self, files: &[PathBuf]) -> Result<(), Failure> {
        let list: String = files.iter().map(|file| format!("{}\n", file.display())).collect();
        self.note("removed", &list)
    }

    /// Gives the tree a `.config` before the next command.
    ///
    /// # Errors
    /// If it cannot be noted down.
    pub fn config(&self, text: &str) -> Result<(), Failure> {
        self.note("config", text)
    }

    fn note(&self, name: &str, text: &str) -> Result<(), Failure> {
        let path = self.dir.join(name);
        fs::write(&path, text).map_err(|error| broken("write", &path, &error))
    }

    /// Runs a short command in the tree.
    ///
    /// # Errors
    /// If it cannot be started or takes too long.
    pub fn run(&self, command: &[&str]) -> Result<ToolOutput, Failure> {
        self.tool(command).run(Duration::from_secs(600))
    }

    /// Runs a command in the tree that may take as long as it likes, line by line.
    ///
    /// # Errors
    /// If it cannot be started.
    pub fn lines(
        &self,
        command: &[&str],
        heard: &mut dyn FnMut(&str),
    ) -> Result<ToolOutput, Failure> {
        self.tool(command).lines(heard)
    }

    /// When the process that is started ends, so does all that it has started: it is the first of a
    /// space of processes of its own.
    fn tool(&self, command: &[&str]) -> Tool {
        let namespaces = [
            "--mount",
            "--pid",
            "--fork",
            "--kill-child",
            "--propagation",
            "private",
            "/bin/sh",
            "-c",
        ];
        let dir = self.dir.display().to_string();
        let layers = || self.layers.iter().map(|layer| layer.display().to_string());
        let shell = |enter: &str| [format!("{enter}{WORK}"), "sh".to_owned(), dir.clone()];
        let own = command.iter().map(|word| (*word).to_owned());
        match self.way {
            Way::Copy => Tool::new("/bin/sh").args(["-c"]).args(shell(COPY)).args(own),
            way => {
                let user: &[&str] =
                    if way == Way::User { &["--user", "--map-root-user"] } else { &[] };
                let options = if way == Way::User { "userxattr," } else { "" };
                Tool::new("unshare")
                    .args(user)
                    .args(namespaces)
                    .args(shell(MOUNT))
                    .args([options.to_owned(), self.layers.len().to_string()])
                    .args(layers())
                    .args(own)
            }
        }
    }

    fn copy(&self) -> Result<(), Failure> {
        for layer in &self.layers {
            let from = layer.join(".");
            let copied = Tool::new("cp")
                .args([
                    "-a".as_ref(),
                    "--reflink=auto".as_ref(),
                    from.as_os_str(),
                    self.upper().as_os_str(),
                ])
                .run(Duration::from_secs(3600))?;
            if !copied.status.success() {
                let title = format!("failed to copy {}: {}", layer.display(), copied.stderr.trim());
                return Err(Failure::new(FailureClass::HostIo, title)
                    .hint("make room: a kernel tree takes 1.5 GB, and its objects as much again"));
            }
        }
        Ok(())
    }
}

/// Deletes a room. The overlay leaves a folder that its own user cannot look into.
pub fn clear(dir: &Path) {
    let left = dir.join("work/work");
    let _ = fs::set_permissions(&left, fs::Permissions::from_mode(0o700));
    match fs::remove_dir_all(dir) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => {
            tracing::warn!(path = %dir.display(), %error, "a folder of a build stays");
        }
        _ => {}
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn tree(dir: &Path) -> PathBuf {
        let tree = dir.join("tree, with: odd name");
        fs::create_dir(&tree).unwrap();
        fs::write(tree.join("kept"), "kept\n").unwrap();
        fs::write(tree.join("gone"), "gone\n").unwrap();
        tree
    }

    fn said(room: &Room, script: &str) -> String {
        let output = room.run(&["sh", "-c", script]).unwrap();
        assert!(
            output.status.success(),
            "{} {}",
            String::from_utf8_lossy(&output.stdout),
            output.stderr
        );
        String::from_utf8(output.stdout).unwrap()
    }

    #[test]
    fn a_build_changes_its_own_layer_only() {
        let dir = tempfile::tempdir().unwrap();
        let tree = tree(dir.path());
        let way = Room::way(dir.path()).unwrap();
        let room = dir.path().join("room");
        fs::create_dir(&room).unwrap();
        let made = Room::new(&room, std::slice::from_ref(&tree), way).unwrap();
        made.remove(&["gone".into()]).unwrap();
        made.config("CONFIG_A=y\n").unwrap();
        let where_ = said(&made, "cat .config kept; ls; echo new >kept; pwd");
        let place = if way == Way::Copy {
            room.join("upper").display().to_string()
        } else {
            "/usr/src/linux".to_owned()
        };
        assert_eq!(where_, format!("CONFIG_A=y\nkept\nkept\n{place}\n"));
        assert_eq!(
            said(&made, "cat kept; echo $HOME $KBUILD_BUILD_USER"),
            "new\n/nonexistent kduel\n"
        );
        assert_eq!(fs::read_to_string(tree.join("kept")).unwrap(), "kept\n");
        assert!(tree.join("gone").exists());
        clear(&room);
        assert!(!room.exists());
    }

    #[test]
    fn a_copy_is_built_where_nothing_can_be_mounted() {
        let dir = tempfile::tempdir().unwrap();
        let tree = tree(dir.path());
        let room = dir.path().join("room");
        fs::create_dir(&room).unwrap();
        let made = Room::new(&room, std::slice::from_ref(&tree), Way::Copy).unwrap();
        made.remove(&["gone".into()]).unwrap();
        assert_eq!(said(&made, "ls; echo new >kept"), "kept\n");
        assert_eq!(fs::read_to_string(tree.join("kept")).unwrap(), "kept\n");
    }
}
