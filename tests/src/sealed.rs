//! Guests of exact runs, one at a time and without the rest of kduel around them.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use kduel::boot::{PluginFiles, SealedSpec, Step, Watch, run_sealed};
use kduel::cli::args::{MeasureArg, RunArgs};
use kduel::config::{self, Environment};
use kduel::fault::Failure;
use kduel::host::Qemu;
use kduel::plan;
use kduel::provision::Provisioner;
use kduel::run::exact::{SealedRecipe, read_symbols, symbols_path};

/// What goes into sealed guests of Debian's 6.1.
pub struct Sealed {
    environment: Environment,
    programs: PathBuf,
    /// What boots them.
    pub qemu: Qemu,
}

impl Sealed {
    /// With agent and plugin from the folder `programs`.
    ///
    /// # Errors
    ///
    /// There is no QEMU, or no place for kduel's files.
    pub fn new(programs: &Path) -> Result<Self, Failure> {
        let environment = Environment::read().unwrap_or_else(|error| panic!("{error}"));
        let qemu = Qemu::find(None, &environment.path)?;
        Ok(Self { environment, programs: programs.to_owned(), qemu })
    }

    /// The guest that carries out `workload` so often on so many processors, with everything counted.
    ///
    /// # Errors
    ///
    /// The kernel cannot be had, or its symbols cannot be read.
    pub fn guest(&self, workload: &str, iterations: u32, cpus: u32) -> Result<SealedSpec, Failure> {
        let args = RunArgs {
            base: Some("debian:bookworm".to_owned()),
            candidates: vec!["debian:bookworm".to_owned()],
            workloads: vec![workload.to_owned()],
            cpus: Some(cpus.to_string()),
            iterations: Some(iterations),
            measure: Some(MeasureArg::Instructions),
            aa: true,
            ..RunArgs::default()
        };
        let loaded = config::load(&args, &self.environment).unwrap_or_else(|e| panic!("{e}"));
        let plan = plan::build(&loaded, plan::FIRST_SEED);
        let experiment = &plan.experiments[0];
        let side = &experiment.sides[0];
        let agent = self.programs.join("kduel-agent.x86_64");
        let cache = self.environment.cache_dir.clone();
        let provisioner = Provisioner::new(cache, agent, Arc::new(|_| {}));
        let kernel = provisioner.kernel(&side.kernel_name, &side.kernel, None)?;
        let symbols = symbols_path(&self.environment.symbols_dir(), &kernel);
        let library = self.programs.join("libkduel_qemu_plugin.so");
        let recipe = SealedRecipe {
            experiment,
            side,
            block: &experiment.blocks[0],
            kernel: &kernel,
            architecture: self.qemu.architecture,
            plugin: Some(PluginFiles { library, symbols: Some(symbols.clone()), chains: false }),
        };
        if !symbols.is_file() {
            read_symbols(&recipe.symbols_boot()?, &symbols, &self.qemu, &silent())?;
        }
        Ok(recipe.boot()?.1)
    }

    /// Every line that a guest tells to its end marker, with `before` done before each; and what was
    /// counted, which is nothing without the plugin.
    ///
    /// # Errors
    ///
    /// The guest did not end in order.
    pub fn told(
        &self,
        spec: &SealedSpec,
        before: &mut dyn FnMut(),
    ) -> Result<(Vec<String>, Vec<u8>), Failure> {
        let mut lines = Vec::new();
        let end = run_sealed(spec, &self.qemu, &silent(), &mut |line| {
            before();
            lines.push(line.to_owned());
            Ok(Step::On)
        });
        end.outcome?;
        assert!(lines.last().is_some_and(|line| line.contains("\"end\"")), "{lines:?}");
        assert_eq!(end.counts.is_empty(), spec.plugin.is_none());
        Ok((lines, end.counts))
    }
}

/// Tells nobody, and never stops.
pub fn silent() -> Watch {
    Watch { listener: Arc::new(|_| {}), stop: Arc::default() }
}
