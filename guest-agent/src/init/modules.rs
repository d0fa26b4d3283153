//! Loads the modules that the initramfs brought along, in the order given.

use std::collections::BTreeMap;
use std::ffi::CString;
use std::fs::{self, File};
use std::path::Path;

use kduel_protocol::MODULES_LIST;
use rustix::io::Errno;

/// Loads them all, with the parameters of the side (`module.parameter` to value). Gives complaints:
/// a module that fails may be one that nobody needs.
pub fn load(parameters: &BTreeMap<String, String>) -> Vec<String> {
    let list = fs::read_to_string(MODULES_LIST).unwrap_or_default();
    list.lines()
        .map(str::trim)
        .filter(|line| !line.is_empty())
        .filter_map(|path| load_one(path, &parameters_of(path, parameters)).err())
        .collect()
}

fn load_one(path: &str, parameters: &str) -> Result<(), String> {
    let file = File::open(path).map_err(|error| format!("opening module {path}: {error}"))?;
    let words = CString::new(parameters)
        .map_err(|_| format!("parameters of module {path} hold a NUL byte"))?;
    match rustix::system::finit_module(&file, &words, 0) {
        Ok(()) | Err(Errno::EXIST) => Ok(()),
        Err(error) => Err(format!("loading module {path} with \"{parameters}\": {error}")),
    }
}

/// The parameters for the module at `path`, as the kernel takes them.
fn parameters_of(path: &str, parameters: &BTreeMap<String, String>) -> String {
    let module = name_of(path);
    let words = parameters.iter().filter_map(|(name, value)| {
        let (of, parameter) = name.split_once('.')?;
        (of.replace('-', "_") == module).then(|| format!("{parameter}={value}"))
    });
    words.collect::<Vec<_>>().join(" ")
}

/// A module's name as the kernel has it: no folder, no ending, underscores.
fn name_of(path: &str) -> String {
    let file = Path::new(path).file_name().unwrap_or_default().to_string_lossy();
    file.split('.').next().unwrap_or_default().replace('-', "_")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_module_gets_its_own_parameters() {
        let parameters = BTreeMap::from([
            ("virtio_net.napi_tx".to_owned(), "0".to_owned()),
            ("virtio-net.gso".to_owned(), "1".to_owned()),
            ("other.x".to_owned(), "2".to_owned()),
        ]);
        assert_eq!(parameters_of("/lib/modules/virtio-net.ko", &parameters), "gso=1 napi_tx=0");
        assert_eq!(parameters_of("/lib/modules/net_failover.ko", &parameters), "");
    }
}
