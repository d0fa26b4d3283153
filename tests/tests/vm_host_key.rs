//! A guest that shows another host key than the one it was given.

#![expect(clippy::unwrap_used, reason = "tests fail by panicking")]

use std::path::PathBuf;
use std::sync::Arc;

use kduel::boot::{Accel, Machine, QemuMachine, Watch};
use kduel::cli::args::RunArgs;
use kduel::config::{Environment, load};
use kduel::fault::FailureClass;
use kduel::host::Qemu;
use kduel::plan;
use kduel::provision::Provisioner;
use kduel::run::GuestRecipe;
use kduel_tests::Sandbox;

fn agent() -> PathBuf {
    let test = std::env::current_exe().unwrap();
    test.parent().unwrap().parent().unwrap().join("kduel-agent.x86_64")
}

#[test]
fn a_guest_with_another_host_key_is_not_talked_to() {
    let sandbox = Sandbox::new();
    let environment = Environment::read().expect("an environment");
    let side = Some("debian:bookworm".to_owned());
    let args = RunArgs {
        base: side.clone(),
        candidates: side.into_iter().collect(),
        workloads: vec!["syscall:call=getppid".to_owned()],
        aa: true,
        ..RunArgs::default()
    };
    let plan = plan::build(&load(&args, &environment).expect("a valid comparison"), 1);
    let experiment = Arc::new(plan.experiments[0].clone());
    let planned = &experiment.sides[0];
    let provisioner = Provisioner::new(environment.cache_dir.clone(), agent(), Arc::new(|_| {}));
    let kernel = provisioner.kernel(&planned.kernel_name, &planned.kernel, None).expect("a kernel");
    let qemu = Qemu::find(None, &environment.path).expect("QEMU");
    let recipe = GuestRecipe {
        experiment: experiment.clone(),
        side: 0,
        kernel,
        accel: Accel::Tcg,
        architecture: qemu.architecture,
    };
    let (_, mut spec) = recipe.boot(&experiment.blocks[0], 0).expect("a guest");
    // The guest keeps the key it was given; we expect another.
    let last = spec.ssh.host_key_blob.len() - 1;
    spec.ssh.host_key_blob[last] ^= 1;
    let watch = Watch { listener: Arc::new(|_| {}), stop: Arc::default() };
    let mut machine = QemuMachine::new(spec, qemu, watch);
    let failure = machine.boot().expect_err("the key is wrong");
    assert_eq!(failure.class, FailureClass::WrongHostKey, "{failure}");
    assert!(failure.details.iter().any(|line| line.starts_with("shown")), "{failure}");
    machine.stop().expect("nothing to stop");
    sandbox.assert_nothing_left();
}
