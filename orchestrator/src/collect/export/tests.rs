use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};

use super::*;
use crate::boot::Accel;
use crate::collect::RunInfo;
use crate::fault::FailureClass;

struct Packed {
    folder: tempfile::TempDir,
    path: PathBuf,
}

fn files(of: &[(&str, &str)]) -> BTreeMap<String, Exported> {
    of.iter()
        .map(|(name, text)| ((*name).to_owned(), Exported::Content(text.as_bytes().to_vec())))
        .collect()
}

fn packed(of: &[(&str, &str)]) -> Packed {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("run.tar.zst");
    pack(&path, &RunInfo::new(Accel::Tcg, Vec::new()), &files(of)).unwrap();
    Packed { folder, path }
}

fn opened(path: &Path) -> Result<BTreeMap<String, String>, String> {
    let folder = tempfile::tempdir().unwrap();
    unpack(path, folder.path()).map_err(|failure| {
        assert_eq!(failure.class, FailureClass::HostIo, "{failure}");
        failure.title
    })?;
    let mut found = BTreeMap::new();
    let mut folders = vec![folder.path().to_owned()];
    while let Some(next) = folders.pop() {
        for entry in fs::read_dir(next).unwrap() {
            let path = entry.unwrap().path();
            match path.is_dir() {
                true => folders.push(path),
                false => {
                    let name = path.strip_prefix(folder.path()).unwrap().display().to_string();
                    found.insert(name, fs::read_to_string(&path).unwrap());
                }
            }
        }
    }
    Ok(found)
}

const FILES: [(&str, &str); 3] =
    [("journal.jsonl", "one\n"), ("profile/a.zst", ""), ("run.json", "{}")];

#[test]
fn what_goes_in_comes_out_and_the_bytes_are_the_same_again() {
    let (one, other) = (packed(&FILES), packed(&FILES));
    assert_eq!(fs::read(&one.path).unwrap(), fs::read(&other.path).unwrap());
    let all = FILES.map(|(name, text)| (name.to_owned(), text.to_owned()));
    assert_eq!(opened(&one.path).unwrap(), all.into());
    assert_eq!(fs::read_dir(one.folder.path()).unwrap().count(), 1, "nothing beside it");
}

#[test]
fn wherever_it_is_cut_or_changed_it_is_refused() {
    let one = packed(&FILES);
    let bytes = fs::read(&one.path).unwrap();
    for length in 0..bytes.len() {
        fs::write(&one.path, &bytes[..length]).unwrap();
        assert!(opened(&one.path).is_err(), "cut at {length}");
    }
    for place in 0..bytes.len() {
        let mut changed = bytes.clone();
        changed[place] ^= 0x10;
        fs::write(&one.path, changed).unwrap();
        if let Ok(found) = opened(&one.path) {
            // A frame's header may say the same in two ways.
            assert_eq!(found.len(), FILES.len(), "changed at {place}");
            assert!(found.values().zip(FILES).all(|(found, (_, text))| found == text));
        }
    }
}

/// An archive with a list of our own making.
fn forged(list: &str, entries: &[(&str, tar::EntryType, &str)]) -> Packed {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("forged.tar.zst");
    let mut archive = tar::Builder::new(Vec::new());
    let all = [(LIST, tar::EntryType::Regular, list)];
    for (name, kind, content) in all.iter().chain(entries) {
        let mut header = tar::Header::new_gnu();
        // The builder refuses such names, other programs do not.
        header.as_mut_bytes()[..name.len()].copy_from_slice(name.as_bytes());
        header.set_entry_type(*kind);
        header.set_mode(0o644);
        if *kind == tar::EntryType::Symlink {
            header.set_link_name(content).unwrap();
            header.set_size(0);
        } else {
            header.set_size(content.len() as u64);
        }
        header.set_cksum();
        let content = if *kind == tar::EntryType::Symlink { "" } else { content };
        archive.append(&header, content.as_bytes()).unwrap();
    }
    let bytes = archive.into_inner().unwrap();
    fs::write(&path, zstd::encode_all(&bytes[..], 1).unwrap()).unwrap();
    Packed { folder, path }
}

fn listing(files: &[(&str, u64, &str)]) -> String {
    let files = files
        .iter()
        .map(|(path, bytes, content)| Listed {
            path: (*path).to_owned(),
            bytes: *bytes,
            sha256: crate::provision::sha256_of(content.as_bytes()),
        })
        .collect();
    let list = List { format: FORMAT.into(), run: "r".into(), kduel: "0".into(), files };
    serde_json::to_string(&list).unwrap()
}

#[test]
fn forged_archives_are_refused_by_name() {
    use tar::EntryType::{Regular, Symlink};
    let file = |content| ("run.json", 2, content);
    for (list, entries, why) in [
        (listing(&[("../x", 2, "{}")]), vec![("../x", Regular, "{}")], "../x leads out of it"),
        (listing(&[("/etc/x", 2, "{}")]), vec![("/etc/x", Regular, "{}")], "/etc/x leads out"),
        (listing(&[("a/./b", 2, "{}")]), vec![("a/./b", Regular, "{}")], "a/./b leads out"),
        (listing(&[("run.json", 0, "")]), vec![("run.json", Symlink, "/etc")], "was changed"),
        (listing(&[file("{}")]), vec![("run.json", Regular, "[]")], "run.json is not as"),
        (listing(&[file("{}")]), vec![("run.json", Regular, "{} ")], "run.json is not as"),
        (listing(&[file("{}")]), vec![("other", Regular, "{}")], "run.json is not as"),
        (listing(&[file("{}")]), vec![], "run.json is missing"),
        (listing(&[]), vec![("run.json", Regular, "{}")], "run.json is not in its list"),
        (listing(&[file("{}"), file("{}")]), vec![], "not sorted"),
        (listing(&[("a", MOST, "")]), vec![], "larger than any run"),
        (listing(&[("a", u64::MAX, ""), ("b", 2, "")]), vec![], "larger than any run"),
        ("{".to_owned(), vec![], "not what `kduel export` writes"),
        ("{\"format\": \"kduel-export/9\"}".to_owned(), vec![], "kduel-export/9, this kduel reads"),
    ] {
        let forged = forged(&list, &entries);
        let found = opened(&forged.path).unwrap_err();
        assert!(found.contains(why), "{found}, wanted {why}");
        assert_eq!(fs::read_dir(forged.folder.path()).unwrap().count(), 1);
    }
}

const MOST: u64 = 1 << 40;

#[test]
fn other_files_are_no_exports() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("x.tar.zst");
    for bytes in [&b""[..], b"text", &[0; 2000], &zstd::encode_all(&b"text"[..], 1).unwrap()] {
        fs::write(&path, bytes).unwrap();
        assert!(opened(&path).is_err());
    }
}
