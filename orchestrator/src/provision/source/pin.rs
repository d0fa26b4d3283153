//! Source packages in `kernels.lock`.

use std::collections::BTreeMap;

use super::super::Provisioner;
use super::super::lock::{KernelsLock, LockedKernel, LockedPackage};
use crate::config::{KernelSpec, Origin, SourceSpec};
use crate::fault::{Failure, FailureClass};

impl Provisioner {
    /// The kernel with the exact version of its Debian source that the lock has, or else that the suite
    /// has now, which is pinned. Kernels with the same source have the same version. Without a lock, or
    /// with another source, it stays as it is.
    ///
    /// # Errors
    /// If the package cannot be had, or is another one than the lock says.
    pub fn pinned(
        &self,
        name: &str,
        spec: &SourceSpec,
        lock: Option<&mut KernelsLock>,
    ) -> Result<SourceSpec, Failure> {
        let (Some(lock), Origin::Debian { package, suite, version }) = (lock, &spec.origin) else {
            return Ok(spec.clone());
        };
        let wanted = locked(lock, &spec.origin);
        let exact = wanted.as_ref().map(|wanted| wanted.version.as_str());
        let (_, found) = self
            .source_package(package, suite, exact.or(version.as_deref()))
            .map_err(|failure| if exact.is_some() { renew(failure, name) } else { failure })?;
        if let Some(wanted) = wanted.filter(|wanted| *wanted != found) {
            let title = format!("{package} {} is not what the lock file says", found.version);
            let failure = Failure::new(FailureClass::KernelUnusable, title)
                .detail(format!("SHA-256 wanted {}", wanted.sha256))
                .detail(format!("SHA-256 found  {}", found.sha256));
            return Err(renew(failure, name));
        }
        let upstream = found.version.rsplit_once('-').map_or(&*found.version, |(first, _)| first);
        let locked = LockedKernel {
            release: upstream.to_owned(),
            spec: KernelSpec::Source(Box::new(spec.clone())),
            files: BTreeMap::new(),
            packages: vec![found.clone()],
        };
        lock.set(name, locked);
        Ok(exactly(spec.clone(), &spec.origin, &found.version))
    }
}

/// The package of whichever kernel has this source.
fn locked(lock: &KernelsLock, origin: &Origin) -> Option<LockedPackage> {
    let has_it = |kernel: &&LockedKernel| match &kernel.spec {
        KernelSpec::Source(spec) => spec.origin == *origin,
        _ => false,
    };
    lock.iter().map(|(_, kernel)| kernel).find(has_it)?.packages.first().cloned()
}

/// With this version wherever the source is `origin`.
fn exactly(mut spec: SourceSpec, origin: &Origin, exact: &str) -> SourceSpec {
    if spec.origin == *origin
        && let Origin::Debian { version, .. } = &mut spec.origin
    {
        *version = Some(exact.to_owned());
    }
    spec.over = spec.over.map(|over| Box::new(exactly(*over, origin, exact)));
    spec
}

fn renew(failure: Failure, name: &str) -> Failure {
    failure
        .detail(format!("kernels.lock pins the source of {name} to that version"))
        .hint(format!("kduel kernels lock --update {name}"))
}
