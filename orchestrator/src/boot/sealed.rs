//! A sealed guest: nothing of the host reaches it once it runs, so that it is a function of its
//! inputs. It carries its plan, tells its events over a serial port, and switches itself off.

use std::fs::File;
use std::os::fd::{AsRawFd, OwnedFd};
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use kduel_protocol::Topology;

use super::console::Console;
use super::ending::{ended, with_console};
use super::handles::{Growing, archives, memory_copy, open_read_only, output_file, read, rig};
use super::lines::{OnLine, OutputLines};
use super::process::{Launch, Process};
use super::sealed_args::{PluginDescriptors, SealedDescriptors, check_sealed, sealed_command_line};
use super::{Deadlines, ImageFile, Watch, topology_args};
use crate::clock::Stopwatch;
use crate::event::RunEvent;
use crate::fault::{Failure, FailureClass};
use crate::host::Qemu;
use crate::id::BootId;

const PAUSE: Duration = Duration::from_millis(20);

/// A crash report is complete when the console has been quiet for this long.
const REPORT_QUIET: Duration = Duration::from_millis(500);

const REPORT_LONGEST: Duration = Duration::from_secs(5);

pub use super::lines::MAX_OUTPUT_BYTES;

/// QEMU's cache of translated code, in MiB. With several vCPUs its size is part of the inputs.
pub const TRANSLATION_MIB: u32 = 512;

/// What a sealed guest is: everything that decides what it does, and nothing else.
#[derive(Debug, Clone)]
pub struct SealedSpec {
    /// Which boot of the run; does not reach the guest.
    pub boot: BootId,
    /// Which side; does not reach the guest.
    pub side: String,
    /// The bzImage.
    pub image: PathBuf,
    /// The base initramfs of this kernel.
    pub initramfs: PathBuf,
    /// A cpio archive put behind the base: plan and the user's files.
    pub overlay: Vec<u8>,
    /// A disk of it, if it has one.
    pub disk: Option<ImageFile>,
    /// The whole kernel command line.
    pub cmdline: String,
    /// Processors and memory.
    pub topology: Topology,
    /// QEMU's name of the CPU model.
    pub cpu: String,
    /// `-erms`, `+pcid`.
    pub cpu_flags: Vec<String>,
    /// An instruction takes 2^shift nanoseconds of guest time.
    pub shift: u8,
    /// Of QEMU's own random numbers.
    pub seed: u64,
    /// [`TRANSLATION_MIB`] outside of tests.
    pub translation_mib: u32,
    /// The most that each of console, results and counts may hold, in bytes; [`MAX_OUTPUT_BYTES`]
    /// outside of tests.
    pub output_bytes: u64,
    /// What counts instructions, if they are counted.
    pub plugin: Option<PluginFiles>,
    /// How long what may take, in time of the host.
    pub deadlines: Deadlines,
}

/// The counting plugin and what it knows of the kernel.
#[derive(Debug, Clone)]
pub struct PluginFiles {
    /// The shared object.
    pub library: PathBuf,
    /// `/proc/kallsyms` of the same kernel and modules; absent: functions stay unnamed.
    pub symbols: Option<PathBuf>,
    /// Follow call chains, too; changes nothing else.
    pub chains: bool,
}

impl SealedSpec {
    /// The value of QEMU's `-cpu`. No model may offer MWAIT, as none does under KVM: QEMU's
    /// translator only yields there if there are several processors, so that none of them would be
    /// idle.
    pub fn cpu_argument(&self) -> String {
        let vendor = topology_args::emulated_vendor(&self.topology, &self.cpu);
        let flags = self.cpu_flags.iter().map(|flag| format!(",{flag}"));
        std::iter::once(format!("{}{vendor},monitor=off", self.cpu)).chain(flags).collect()
    }

    /// The topology that the guest is told of: one with a single processor has room for a second, so
    /// that its kernel is one for several.
    pub fn described(&self) -> Topology {
        match self.topology.possible_cpus() {
            1 => Topology { sockets: 2, present: Some(1), ..self.topology.clone() },
            _ => self.topology.clone(),
        }
    }
}

/// Whether a guest that has told something shall go on.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Step {
    /// Until it switches itself off.
    On,
    /// What it was booted for has been told: end it.
    Enough,
}

/// What a sealed guest left behind.
#[derive(Debug)]
pub struct SealedEnd {
    /// How it ended: in order, or not.
    pub outcome: Result<(), Failure>,
    /// The console, raw.
    pub console: String,
    /// What the plugin wrote; empty without one.
    pub counts: Vec<u8>,
    /// Features of the CPU model that QEMU's translator lacks, as QEMU names them.
    pub dropped: Vec<String>,
}

/// Boots `spec` and hands over each line that the guest tells, as it comes. Blocks until the guest is
/// gone, which it is afterwards whatever happened.
pub fn run_sealed(
    spec: &SealedSpec,
    qemu: &Qemu,
    watch: &Watch,
    on_line: &mut dyn FnMut(&str) -> Result<Step, Failure>,
) -> SealedEnd {
    let mut guest = match Guest::start(spec, qemu, watch) {
        Ok(guest) => guest,
        Err(failure) => {
            return SealedEnd {
                outcome: Err(failure),
                console: String::new(),
                counts: Vec::new(),
                dropped: Vec::new(),
            };
        }
    };
    let outcome = guest.follow(&spec.deadlines, on_line);
    guest.bury(outcome, spec.deadlines.shutdown)
}

struct Guest<'a> {
    process: Process,
    console: Console,
    results: Growing,
    lines: OutputLines,
    counts: Option<File>,
    /// The writer of console and results is gone.
    gone: Arc<AtomicBool>,
    watch: &'a Watch,
    /// vCPUs that take turns hear it when QEMU is stopped.
    takes_turns: bool,
    output_bytes: u64,
}

impl<'a> Guest<'a> {
    fn start(spec: &SealedSpec, qemu: &Qemu, watch: &'a Watch) -> Result<Self, Failure> {
        let (console, results) = (output_file("console")?, output_file("results")?);
        let image = memory_copy("kernel", &spec.image)?;
        let initramfs = archives("initramfs", &[&read(&spec.initramfs)?, &spec.overlay])?;
        let plugin = spec.plugin.as_ref().map(Plugin::open).transpose()?;
        let disk = spec.disk.as_ref().map(|disk| open_read_only(&disk.path)).transpose()?;
        let descriptors = SealedDescriptors {
            console: console.as_raw_fd(),
            results: results.as_raw_fd(),
            image: image.as_raw_fd(),
            initramfs: initramfs.as_raw_fd(),
            disk: disk.as_ref().map(AsRawFd::as_raw_fd),
            plugin: plugin.as_ref().map(Plugin::descriptors),
        };
        let argv = sealed_command_line(spec, &qemu.program, qemu.architecture, &descriptors);
        check_sealed(&argv)?;
        watch.tell(RunEvent::CommandLine { boot: spec.boot.clone(), argv: argv.clone() });
        let gone = Arc::new(AtomicBool::new(false));
        let growing = |file: &File| -> Result<Growing, Failure> {
            let own = file.try_clone();
            let own = own.map_err(|error| rig(&format!("failed to share a file: {error}")))?;
            Ok(Growing::new(own, Arc::clone(&gone)))
        };
        let (seen, told) = (growing(&console)?, growing(&results)?);
        let mut inherited: Vec<OwnedFd> = vec![console.into(), results.into(), image, initramfs];
        inherited.extend(disk);
        let counts = match plugin {
            Some(plugin) => Some(plugin.hand_over(&mut inherited)?),
            None => None,
        };
        let process = Process::start(Launch {
            program: qemu.program.clone(),
            args: argv[1..].to_vec(),
            inherited,
            file_bytes: spec.output_bytes,
        })?;
        // No ready line: a sealed guest is not waited for.
        let never = "\n".to_owned();
        let console = Console::read(seen, spec.side.clone(), never, watch.clone())
            .map_err(|error| rig(&format!("failed to start a thread: {error}")))?;
        let lines = OutputLines::default();
        Ok(Self {
            process,
            console,
            results: told,
            lines,
            counts,
            gone,
            watch,
            takes_turns: spec.topology.cpus() > 1,
            output_bytes: spec.output_bytes,
        })
    }

    /// Until the guest is gone, has told enough, or did what it must not.
    fn follow(
        &mut self,
        deadlines: &Deadlines,
        on_line: &mut dyn FnMut(&str) -> Result<Step, Failure>,
    ) -> Result<(), Failure> {
        let mut heard = None::<Stopwatch>;
        let started = Stopwatch::start();
        loop {
            if self.takes_turns && self.process.was_stopped() {
                let title = "a guest with several processors is not the same after that";
                return Err(Failure::new(FailureClass::QemuStopped, title));
            }
            let is_gone = self.process.has_ended();
            let (mut step, mut told) = (Step::On, false);
            self.take(&mut |line| {
                told = true;
                if step == Step::On {
                    step = on_line(line)?;
                }
                Ok(())
            })?;
            if told {
                heard = Some(Stopwatch::start());
            }
            if step == Step::Enough {
                return Ok(());
            }
            if is_gone {
                return self.gone();
            }
            if self.watch.stopped() {
                return Err(Failure::new(FailureClass::Interrupted, "stopped before it was done"));
            }
            if self.console.crash().is_some() {
                self.console.settle(REPORT_QUIET, REPORT_LONGEST);
                return Err(self.crashed_or(FailureClass::Panic, ""));
            }
            match heard {
                None if started.elapsed() > deadlines.boot => {
                    return Err(self.hang("the agent told nothing", deadlines.boot));
                }
                Some(heard) if heard.elapsed() > deadlines.progress => {
                    return Err(self.hang("the agent told nothing more", deadlines.progress));
                }
                _ => self.console.wait(PAUSE),
            }
        }
    }

    /// Hands over what was told since the last time.
    fn take(&mut self, on_line: OnLine<'_>) -> Result<(), Failure> {
        let mut buffer = [0; 16 * 1024];
        loop {
            let read = self.results.now(&mut buffer);
            let read = read.map_err(|error| rig(&format!("failed to read results: {error}")))?;
            if read == 0 {
                return Ok(());
            }
            self.lines.feed(&buffer[..read], on_line)?;
            self.whole("what the agent told", self.results.length())?;
        }
    }

    /// A file at its limit takes no more, so that nobody knows what it lacks.
    fn whole(&self, what: &str, length: u64) -> Result<(), Failure> {
        if length < self.output_bytes {
            return Ok(());
        }
        let title = format!("{what} is cut off at {} bytes", self.output_bytes);
        Err(Failure::new(FailureClass::OutputOversized, title))
    }

    /// QEMU has ended by itself: in order, if the guest asked it to.
    fn gone(&mut self) -> Result<(), Failure> {
        self.gone.store(true, Ordering::Release);
        self.console.join();
        if self.console.crash().is_some() {
            return Err(self.crashed_or(FailureClass::Panic, ""));
        }
        match self.process.end(REPORT_QUIET) {
            Ok(status) if status.success() && !self.console.kernel_started() => {
                let title = "the guest ended before the kernel printed anything";
                Err(with_console(Failure::new(FailureClass::BootFailed, title), &self.console))
            }
            Ok(status) if status.success() => Ok(()),
            _ => Err(ended(&mut self.process, &self.console)),
        }
    }

    fn crashed_or(&self, class: FailureClass, title: &str) -> Failure {
        let failure = match self.console.crash() {
            Some(crash) => Failure::new(crash.class, crash.title),
            None => Failure::new(class, title),
        };
        with_console(failure, &self.console)
    }

    fn hang(&self, what: &str, waited: Duration) -> Failure {
        let silence = self.console.silence();
        let class = match silence < waited / 4 {
            true => FailureClass::ChattyHang,
            false if !self.console.kernel_started() => FailureClass::BootFailed,
            false => FailureClass::SilentHang,
        };
        let title = format!("{what} within {:.0} s of the host's time", waited.as_secs_f64());
        with_console(Failure::new(class, title), &self.console)
            .detail(format!("last output on the console {:.1} s ago", silence.as_secs_f64()))
    }

    /// Ends QEMU whatever its state, proves that nothing of it is left, and reads what it wrote.
    fn bury(mut self, outcome: Result<(), Failure>, patience: Duration) -> SealedEnd {
        let buried = self.process.end(patience);
        self.gone.store(true, Ordering::Release);
        self.console.join();
        let console = self.console.text();
        let counts =
            self.counts.as_ref().map_or_else(|| Ok(Vec::new()), content).and_then(|counts| {
                self.whole("what was counted", counts.len() as u64)?;
                self.whole("the console", self.console.length())?;
                Ok(counts)
            });
        let (outcome, counts) = match (outcome, buried, counts) {
            (Err(failure), _, counts) => (Err(failure), counts.unwrap_or_default()),
            (Ok(()), Err(failure), _) | (Ok(()), Ok(_), Err(failure)) => (Err(failure), Vec::new()),
            (Ok(()), Ok(_), Ok(counts)) => (Ok(()), counts),
        };
        SealedEnd { outcome, console, counts, dropped: dropped(&self.process.stderr()) }
    }
}

/// `pcid`, `spec-ctrl`, … of `TCG doesn't support requested feature: CPUID[eax=01h].ECX.pcid [bit 17]`.
fn dropped(stderr: &str) -> Vec<String> {
    let features = stderr.lines().filter_map(|line| {
        let (_, feature) = line.split_once("TCG doesn't support requested feature: ")?;
        let name = feature.split(" [").next()?;
        Some(name.rsplit_once('.').map_or(name, |(_, name)| name).to_owned())
    });
    let mut features: Vec<String> = features.collect();
    features.sort();
    features.dedup();
    features
}

/// The plugin's files, opened by us, so that QEMU's own user needs no right to any path.
struct Plugin {
    library: OwnedFd,
    symbols: Option<OwnedFd>,
    counts: File,
    chains: bool,
}

impl Plugin {
    fn open(files: &PluginFiles) -> Result<Self, Failure> {
        let symbols = files.symbols.as_ref();
        Ok(Self {
            library: memory_copy("plugin", &files.library)?,
            symbols: symbols.map(|path| memory_copy("symbols", path)).transpose()?,
            counts: output_file("counts")?,
            chains: files.chains,
        })
    }

    fn descriptors(&self) -> PluginDescriptors {
        PluginDescriptors {
            library: self.library.as_raw_fd(),
            counts: self.counts.as_raw_fd(),
            symbols: self.symbols.as_ref().map(AsRawFd::as_raw_fd),
            chains: self.chains,
        }
    }

    fn hand_over(self, inherited: &mut Vec<OwnedFd>) -> Result<File, Failure> {
        let own = self.counts.try_clone();
        let own = own.map_err(|error| rig(&format!("failed to share a file: {error}")))?;
        inherited.extend([self.library, self.counts.into()]);
        inherited.extend(self.symbols);
        Ok(own)
    }
}

fn content(file: &File) -> Result<Vec<u8>, Failure> {
    let mut content = Vec::new();
    let ended = Arc::new(AtomicBool::new(true));
    let read = file
        .try_clone()
        .and_then(|file| std::io::Read::read_to_end(&mut Growing::new(file, ended), &mut content));
    read.map_err(|error| rig(&format!("failed to read the counts: {error}")))?;
    Ok(content)
}

#[cfg(test)]
pub(crate) mod testing {
    use std::os::unix::fs::PermissionsExt;

    use tempfile::TempDir;

    use super::*;
    use crate::boot::Accel;
    use crate::boot::qemu_args::ARCHITECTURES;
    use crate::host::Version;

    /// The line by which a player's kernel is known to have started.
    pub(crate) const BANNER: &str = "echo 'Linux version 6.1' > $console";

    /// A QEMU that is a shell script; `$results`, `$console` and `$counts` are its outputs, and the
    /// last is empty where nothing is counted. It lies in the folder.
    pub(crate) fn player(script: &str) -> (TempDir, Qemu) {
        let folder = tempfile::tempdir().unwrap();
        let program = folder.path().join("qemu");
        let outputs = "for word in \"$@\"; do case $word in\n\
            file,id=console,path=*) console=${word##*=};; file,id=results,path=*) results=${word##*=};;\n\
            *,out=*) counts=${word#*,out=}; counts=${counts%%,*};; esac; done";
        std::fs::write(&program, format!("#!/bin/sh\n{outputs}\n{script}\n")).unwrap();
        // QEMU has a user of its own; what it wants to know of itself the next time it may note here.
        for (path, mode) in [(folder.path(), 0o777), (&program, 0o755)] {
            let mode = std::fs::Permissions::from_mode(mode);
            std::fs::set_permissions(path, mode).unwrap();
        }
        let qemu = Qemu { program, version: Version(10, 0, 0), architecture: &ARCHITECTURES[0] };
        (folder, qemu)
    }

    /// A sealed guest with one processor and the plugin.
    pub(crate) fn spec() -> SealedSpec {
        SealedSpec {
            boot: BootId("fork-b00-base".into()),
            side: "base".into(),
            image: "/dev/null".into(),
            initramfs: "/dev/null".into(),
            overlay: Vec::new(),
            disk: None,
            cmdline: "console=ttyS0 nokaslr".into(),
            topology: Topology::default(),
            cpu: "Opteron_G3-v1".into(),
            cpu_flags: vec!["-aes".into()],
            shift: 2,
            seed: 1,
            translation_mib: TRANSLATION_MIB,
            output_bytes: MAX_OUTPUT_BYTES,
            plugin: Some(PluginFiles {
                library: "/dev/null".into(),
                symbols: Some("/dev/null".into()),
                chains: false,
            }),
            deadlines: Deadlines::of(Accel::Tcg),
        }
    }
}

#[cfg(test)]
#[path = "sealed_tests.rs"]
mod tests;
