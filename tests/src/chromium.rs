//! A real browser without a window, told what to do over a pipe.

use std::collections::VecDeque;
use std::env;
use std::fs;
use std::io::{Read as _, Write as _};
use std::os::unix::process::CommandExt as _;
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};
use std::sync::mpsc::{self, Receiver};
use std::thread;
use std::time::Duration;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use kduel::clock::Deadline;
use rustix::process::{Pid, Signal, kill_process_group, test_kill_process_group};
use serde_json::{Value, json};
use tempfile::TempDir;

/// What an answer may take; a busy host starts a browser slowly.
const PATIENCE: Duration = Duration::from_secs(60);

/// Its pipe is on descriptors 3 and 4, which only a shell gives without unsafe code.
const START: &str = "exec \"$0\" \"$@\" 3<&0 4>&1 </dev/null >/dev/null 2>&1";

/// Chromium with a profile of its own and one page. All of it ends when this is dropped.
pub struct Chromium {
    process: Child,
    commands: ChildStdin,
    messages: Receiver<Value>,
    /// Events that came while an answer was waited for.
    events: VecDeque<Value>,
    session: String,
    last: u64,
    profile: TempDir,
}

/// What a browser had to say of a page.
#[derive(Debug, Default)]
pub struct Loaded {
    /// What was asked for, the page itself first.
    pub requests: Vec<String>,
    /// Errors, warnings and what scripts print.
    pub complaints: Vec<String>,
}

impl Chromium {
    /// Starts it.
    ///
    /// # Panics
    ///
    /// It cannot be started, or does not answer.
    #[track_caller]
    pub fn start() -> Self {
        let profile = tempfile::tempdir().expect("a folder for the browser's profile");
        let mut process = Command::new("sh")
            .args(["-c", START, "chromium", "--headless=new", "--remote-debugging-pipe"])
            // Tests may run as root, where Chromium's own sandbox does not start.
            .args(["--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage", "--hide-scrollbars"])
            .args(["--no-first-run", "--disable-background-networking", "--disable-extensions"])
            .arg(format!("--user-data-dir={}", profile.path().display()))
            .env("HOME", profile.path())
            .env("TMPDIR", profile.path())
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .process_group(0)
            .spawn()
            .expect("start a shell");
        let commands = process.stdin.take().expect("a pipe to the browser");
        let messages = listen(process.stdout.take().expect("a pipe from the browser"));
        let (events, session) = (VecDeque::new(), String::new());
        let mut chromium = Self { process, commands, messages, events, session, last: 0, profile };
        let page = chromium.ask("Target.createTarget", json!({"url": "about:blank"}));
        let attach = json!({"targetId": page["targetId"], "flatten": true});
        let attached = chromium.ask("Target.attachToTarget", attach);
        chromium.session = attached["sessionId"].as_str().expect("a session").to_owned();
        for domain in ["Page", "Runtime", "Log", "Network"] {
            chromium.ask(&format!("{domain}.enable"), json!({}));
        }
        chromium
    }

    /// As if the window had this width and the reader wished for dark pages or for light ones.
    #[track_caller]
    pub fn resize(&mut self, width: u32, dark: bool) {
        let size = json!({"width": width, "height": 900, "deviceScaleFactor": 1, "mobile": false});
        self.ask("Emulation.setDeviceMetricsOverride", size);
        let value = if dark { "dark" } else { "light" };
        let features = json!({"features": [{"name": "prefers-color-scheme", "value": value}]});
        self.ask("Emulation.setEmulatedMedia", features);
    }

    /// Opens a file and waits until it is there.
    #[track_caller]
    pub fn open(&mut self, page: &Path) -> Loaded {
        self.events.clear();
        self.ask("Page.navigate", json!({"url": format!("file://{}", page.display())}));
        let mut loaded = Loaded::default();
        loop {
            let event = self.events.pop_front().unwrap_or_else(|| self.receive());
            loaded.take(&event);
            if event["method"] == "Page.loadEventFired" {
                break;
            }
        }
        // What was already on its way when the page was there.
        self.evaluate("1");
        self.events.drain(..).for_each(|event| loaded.take(&event));
        loaded
    }

    /// The value of an expression in the page.
    #[track_caller]
    pub fn evaluate(&mut self, expression: &str) -> Value {
        let ask = json!({"expression": expression, "returnByValue": true, "awaitPromise": true});
        let answer = self.ask("Runtime.evaluate", ask);
        assert!(answer.get("exceptionDetails").is_none(), "{expression}: {answer:#}");
        answer["result"]["value"].clone()
    }

    /// A picture of the whole page in `file`, as PNG.
    #[track_caller]
    pub fn screenshot(&mut self, file: &Path) {
        let shot = json!({"captureBeyondViewport": true});
        let size = self.ask("Page.getLayoutMetrics", json!({}))["cssContentSize"].clone();
        let clip = json!({"x": 0, "y": 0, "width": size["width"], "scale": 1,
            "height": size["height"].as_f64().map_or(900.0, |height| height.min(12_000.0))});
        let mut shot = shot;
        shot["clip"] = clip;
        let answer = self.ask("Page.captureScreenshot", shot);
        let data = answer["data"].as_str().expect("a picture");
        let picture = STANDARD.decode(data).expect("a picture in base64");
        fs::write(file, picture)
            .unwrap_or_else(|error| panic!("write {}: {error}", file.display()));
    }

    #[track_caller]
    fn ask(&mut self, method: &str, params: Value) -> Value {
        self.last += 1;
        let mut command = json!({"id": self.last, "method": method, "params": params});
        if !self.session.is_empty() {
            command["sessionId"] = json!(self.session);
        }
        let sent = self.commands.write_all(format!("{command}\0").as_bytes());
        sent.unwrap_or_else(|error| panic!("tell the browser {method}: {error}"));
        loop {
            let message = self.receive();
            if message["id"] == json!(self.last) {
                assert!(message.get("error").is_none(), "{method}: {message:#}");
                return message["result"].clone();
            }
            self.events.push_back(message);
        }
    }

    #[track_caller]
    fn receive(&self) -> Value {
        let message = self.messages.recv_timeout(PATIENCE);
        message.unwrap_or_else(|error| panic!("the browser does not answer: {error}"))
    }
}

impl Loaded {
    fn take(&mut self, event: &Value) {
        let params = &event["params"];
        match event["method"].as_str().unwrap_or_default() {
            "Network.requestWillBeSent" => {
                self.requests.extend(params["request"]["url"].as_str().map(str::to_owned));
            }
            "Runtime.consoleAPICalled" => self.complaints.push(params["args"].to_string()),
            "Runtime.exceptionThrown" => {
                self.complaints.push(params["exceptionDetails"].to_string());
            }
            "Log.entryAdded" => self.complaints.push(params["entry"]["text"].to_string()),
            _ => {}
        }
    }
}

/// Messages end with a zero byte.
fn listen(mut from: ChildStdout) -> Receiver<Value> {
    let (sender, receiver) = mpsc::channel();
    thread::spawn(move || {
        let (mut buffer, mut chunk) = (Vec::new(), vec![0; 1 << 16]);
        while let Ok(read @ 1..) = from.read(&mut chunk) {
            buffer.extend_from_slice(&chunk[..read]);
            while let Some(end) = buffer.iter().position(|byte| *byte == 0) {
                let message: Vec<u8> = buffer.drain(..=end).collect();
                let message = serde_json::from_slice(&message[..end]);
                if !message.is_ok_and(|message| sender.send(message).is_ok()) {
                    return;
                }
            }
        }
    });
    receiver
}

impl Drop for Chromium {
    /// Ends the browser and everything that it started, and sees that it is gone.
    fn drop(&mut self) {
        let Some(group) = i32::try_from(self.process.id()).ok().and_then(Pid::from_raw) else {
            return;
        };
        let deadline = Deadline::after(Duration::from_secs(10));
        let _ = kill_process_group(group, Signal::KILL);
        let _ = self.process.wait();
        // Whoever was a parent's child is this process's, if it adopts orphans: those are waited for.
        while test_kill_process_group(group).is_ok() && !deadline.passed() {
            let _ = rustix::process::waitpgid(group, rustix::process::WaitOptions::NOHANG);
            thread::sleep(Duration::from_millis(20));
        }
        if test_kill_process_group(group).is_ok() {
            eprintln!("processes of group {group:?} are left of a browser");
        }
        let _ = fs::remove_dir_all(self.profile.path());
    }
}

/// A folder for what tests leave to be looked at, below the folder of everything that is built.
///
/// # Panics
///
/// It cannot be created.
#[track_caller]
pub fn artefacts(name: &str) -> PathBuf {
    let test = env::current_exe().unwrap_or_else(|error| panic!("where is this test: {error}"));
    let target = test.ancestors().nth(3).map(Path::to_path_buf).unwrap_or_default();
    let folder = target.join("artefacts").join(name);
    fs::create_dir_all(&folder)
        .unwrap_or_else(|error| panic!("failed to create {}: {error}", folder.display()));
    folder
}
