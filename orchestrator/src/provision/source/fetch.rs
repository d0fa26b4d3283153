//! Debian's packages of kernel sources, by the same apt as the binary ones.

use std::fs;
use std::path::PathBuf;

use super::super::Provisioner;
use super::super::apt::{Apt, Package};
use super::super::cache::write_atomically;
use super::super::lock::LockedPackage;
use super::super::packages::locked;
use super::super::version;
use crate::fault::{Failure, FailureClass};
use crate::text;

impl Provisioner {
    /// The file and the exact name of a source package; the newest that fits `version`. An exact version
    /// that was fetched before needs no mirror.
    pub(in super::super) fn source_package(
        &self,
        package: &str,
        suite: &str,
        version: Option<&str>,
    ) -> Result<(PathBuf, LockedPackage), Failure> {
        if let Some(known) = version.map(|exact| self.known_source(package, exact)).transpose()?
            && let Some(known) = known
        {
            return Ok(known);
        }
        let _held = self.lock_suite(suite)?;
        let apt = self.apt(suite)?;
        let renewed = self.renew(&apt, suite)?;
        let mut found = find(&apt, package, version)?;
        if found.is_none() && !renewed {
            self.update(&apt, suite)?;
            found = find(&apt, package, version)?;
        }
        let Some(found) = found else { return Err(not_found(&apt, package, version)?) };
        let file = self.fetch(&apt, &found)?;
        let found = locked(found);
        let index = self.source_index(&found.name, &found.version)?;
        write_atomically(&index, found.sha256.as_bytes(), 0o644)?;
        Ok((file, found))
    }

    /// A source package that is in the cache, by its exact version.
    fn known_source(
        &self,
        package: &str,
        version: &str,
    ) -> Result<Option<(PathBuf, LockedPackage)>, Failure> {
        let Ok(sha256) = fs::read_to_string(self.source_index(package, version)?) else {
            return Ok(None);
        };
        let (name, version) = (package.to_owned(), version.to_owned());
        let file = self.cache.get(&sha256)?;
        Ok(file.map(|file| (file, LockedPackage { name, version, sha256 })))
    }

    /// The file that says which digest a source package has.
    fn source_index(&self, package: &str, version: &str) -> Result<PathBuf, Failure> {
        Ok(self.cache.folder("sources")?.join(format!("{package}_{version}")))
    }
}

fn find(apt: &Apt, package: &str, version: Option<&str>) -> Result<Option<Package>, Failure> {
    let there = apt.show(&[package.to_owned()])?.into_iter();
    let fits =
        |found: &Package| version.is_none_or(|wanted| version::matches(&found.version, wanted));
    Ok(there.filter(fits).max_by(|a, b| version::compare(&a.version, &b.version)))
}

fn not_found(apt: &Apt, package: &str, version: Option<&str>) -> Result<Failure, Failure> {
    let suite = apt.suite();
    let wanted = version.map_or_else(String::new, |version| format!(" of version {version}"));
    let title = format!("the Debian suite {suite} has no package {package}{wanted}");
    let failure = Failure::new(FailureClass::KernelUnusable, title);
    let versions = apt.show(&[package.to_owned()])?;
    if !versions.is_empty() {
        let versions: Vec<&str> = versions.iter().map(|found| found.version.as_str()).collect();
        return Ok(failure.hint(format!("{suite} has {}", versions.join(", "))));
    }
    let names = apt.names("linux-source-")?;
    let near = text::nearest(package, names.iter().map(String::as_str))
        .map_or_else(String::new, |near| format!("; did you mean {near}?"));
    Ok(failure.hint(format!("sources in {suite}: {}{near}", names.join(", "))))
}
