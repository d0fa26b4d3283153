//! The packages of a Debian kernel: locked or resolved, cached or fetched.

use std::path::PathBuf;

use super::Provisioner;
use super::apt::{Apt, Package};
use super::cache::sweep;
use super::debian;
use super::lock::{LockedKernel, LockedPackage};
use crate::config::DebianSpec;
use crate::fault::{Failure, FailureClass};

impl Provisioner {
    /// Files and names of the packages that make up the newest kernel fitting `spec`.
    pub(super) fn resolved(
        &self,
        spec: &DebianSpec,
    ) -> Result<(Vec<PathBuf>, Vec<LockedPackage>), Failure> {
        let _held = self.lock_suite(&spec.suite)?;
        let apt = self.apt(&spec.suite)?;
        let renewed = self.renew(&apt, &spec.suite)?;
        let packages = match debian::resolve(&apt, spec) {
            Err(failure) if failure.class == FailureClass::KernelUnusable && !renewed => {
                self.update(&apt, &spec.suite)?;
                debian::resolve(&apt, spec)?
            }
            other => other?,
        };
        let debs = packages
            .iter()
            .map(|package| self.fetch(&apt, package))
            .collect::<Result<Vec<_>, _>>()?;
        Ok((debs, packages.into_iter().map(locked).collect()))
    }

    /// Files of the packages that `name` is locked to: from the cache, and from the mirror as long
    /// as it has them.
    pub(super) fn locked(
        &self,
        name: &str,
        spec: &DebianSpec,
        locked: &LockedKernel,
    ) -> Result<Vec<PathBuf>, Failure> {
        let mut debs = Vec::new();
        for package in &locked.packages {
            debs.push(match self.cache.get(&package.sha256)? {
                Some(path) => path,
                None => self.fetch_locked(name, spec, package)?,
            });
        }
        Ok(debs)
    }

    fn fetch_locked(
        &self,
        name: &str,
        spec: &DebianSpec,
        wanted: &LockedPackage,
    ) -> Result<PathBuf, Failure> {
        let _held = self.lock_suite(&spec.suite)?;
        let apt = self.apt(&spec.suite)?;
        let find = || -> Result<Option<Package>, Failure> {
            let there = apt.show(std::slice::from_ref(&wanted.name))?;
            Ok(there.into_iter().find(|found| locked(found.clone()) == *wanted))
        };
        let renewed = self.renew(&apt, &spec.suite)?;
        let mut found = find()?;
        if found.is_none() && !renewed {
            self.update(&apt, &spec.suite)?;
            found = find()?;
        }
        if let Some(package) = found {
            return self.fetch(&apt, &package);
        }
        let LockedPackage { name: package, version, sha256 } = wanted;
        let newest = debian::newest_of_flavour(&apt, spec)?.map_or_else(
            || "none".to_owned(),
            |newest| format!("{} {}", newest.name, newest.version),
        );
        Err(Failure::new(
            FailureClass::KernelUnusable,
            format!(
                "the kernel {name} is locked to {package} {version}, which {} no longer has",
                spec.suite
            ),
        )
        .detail(format!("SHA-256 of that package: {sha256}"))
        .detail(format!("newest {} in {}: {newest}", spec.flavour, spec.suite))
        .hint(format!("kduel kernels lock --update {name}")))
    }

    /// A package's file in the cache, fetched if it is not there.
    pub(super) fn fetch(&self, apt: &Apt, package: &Package) -> Result<PathBuf, Failure> {
        if let Some(path) = self.cache.get(&package.sha256)? {
            return Ok(path);
        }
        let Package { name, version, sha256, size_bytes, .. } = package;
        let size = size_bytes.div_ceil(1 << 20);
        self.tell(format!("fetching {name} {version} ({size} MiB)"));
        // Of one suite, whose lock is held.
        let folder = self.cache.folder(&format!("fetching/{}", apt.suite()))?;
        sweep(&folder);
        let folder = tempfile::tempdir_in(&folder)
            .map_err(|error| Failure::host_io("make a folder in", &folder, &error))?;
        let deb = apt.download(package, folder.path())?;
        let (path, found) = self.cache.put_file(&deb)?;
        if found == *sha256 {
            return Ok(path);
        }
        Err(Failure::new(
            FailureClass::HostIo,
            format!("{name} {version} is not what the archive signed"),
        )
        .detail(format!("SHA-256 wanted {sha256}"))
        .detail(format!("SHA-256 found  {found}"))
        .hint("try again; if it stays so, the mirror or a proxy on the way is at fault"))
    }

    /// Fetches the lists if they are old: whether it did. Old lists do where the mirror cannot be
    /// reached.
    pub(super) fn renew(&self, apt: &Apt, suite: &str) -> Result<bool, Failure> {
        if apt.is_fresh() {
            return Ok(false);
        }
        match self.update(apt, suite) {
            Ok(()) => Ok(true),
            Err(failure) if apt.has_lists() => {
                self.tell(format!("using old package lists of {suite}: {failure}"));
                Ok(true)
            }
            Err(failure) => Err(failure),
        }
    }

    pub(super) fn update(&self, apt: &Apt, suite: &str) -> Result<(), Failure> {
        self.tell(format!("fetching the package lists of {suite}"));
        apt.update()
    }

    pub(super) fn apt(&self, suite: &str) -> Result<Apt, Failure> {
        let dir = self.cache.folder("apt")?.join(suite);
        Apt::new(&self.host_root, &dir, suite)
    }

    pub(super) fn lock_suite(&self, suite: &str) -> Result<super::cache::CacheLock, Failure> {
        let plain = |c: char| c.is_ascii_alphanumeric() || c == '-';
        if suite.is_empty() || !suite.chars().all(plain) {
            return Err(Failure::new(
                FailureClass::KernelUnusable,
                format!("{suite:?} is no name of a Debian suite"),
            )
            .hint("such as bookworm, bookworm-security, bookworm-backports, trixie or sid"));
        }
        self.cache.lock(&format!("apt-{suite}"), || {
            self.tell(format!("waiting for another kduel that fetches from {suite}"));
        })
    }
}

/// A package as a lock file names it.
pub(super) fn locked(package: Package) -> LockedPackage {
    LockedPackage { name: package.name, version: package.version, sha256: package.sha256 }
}
