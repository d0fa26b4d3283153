//! Pages as a reader sees them: in a real browser, wide and narrow, light and dark.

use std::fs;
use std::path::{Path, PathBuf};

use kduel_tests::{AD_HOC, Chromium, Said, Sandbox, artefacts};
use serde_json::json;

/// What is wrong with what the page shows: charts without a size, text that is cut off or lies over
/// other text, and a page that is wider than its window.
const FLAWS: &str = r#"(() => {
  const flaws = [];
  const pictures = document.querySelectorAll("svg");
  if (!pictures.length) flaws.push("no chart at all");
  for (const svg of pictures) {
    const box = svg.getBoundingClientRect();
    if (!(box.width > 40 && box.height > 10)) flaws.push(`${svg.id} is ${box.width} x ${box.height}`);
    for (const name of (svg.getAttribute("aria-labelledby") ?? "").split(" "))
      if (!document.getElementById(name)?.textContent) flaws.push(`${svg.id} is not named`);
    const texts = [...svg.querySelectorAll("text")].map((text) => [text, text.getBoundingClientRect()]);
    for (const [text, at] of texts) {
      const size = parseFloat(getComputedStyle(text).fontSize) * at.height / text.getBBox().height;
      if (size < 10) flaws.push(`${svg.id}: "${text.textContent}" is ${size} pixels high`);
      if (at.left < box.left - 4 || at.right > box.right + 4)
        flaws.push(`${svg.id}: "${text.textContent}" sticks out`);
      for (const [other, its] of texts)
        if (other !== text && at.left < its.right - 1 && its.left < at.right - 1
            && at.top < its.bottom - 3 && its.top < at.bottom - 3)
          flaws.push(`${svg.id}: "${text.textContent}" lies over "${other.textContent}"`);
    }
  }
  const wide = document.documentElement.scrollWidth - innerWidth;
  if (wide > 0) flaws.push(`the page is ${wide} pixels wider than the window`);
  return flaws;
})()"#;

/// Contrast of text with the ground it stands on, as the accessibility guidelines count it.
const FAINT: &str = r#"(() => {
  const light = (colour) => {
    const [r, g, b] = colour.match(/[\d.]+/g).map(Number).map((v) => v / 255)
      .map((v) => v <= 0.04045 ? v / 12.92 : ((v + 0.055) / 1.055) ** 2.4);
    return 0.2126 * r + 0.7152 * g + 0.0722 * b;
  };
  const ground = (element) => {
    for (let at = element; at; at = at.parentElement) {
      const colour = getComputedStyle(at).backgroundColor;
      if (colour !== "rgba(0, 0, 0, 0)") return colour;
    }
    return "rgb(255, 255, 255)";
  };
  const faint = new Set();
  for (const element of document.querySelectorAll("h1,h2,h3,p,b,th,td,li,a,span,small,figcaption,summary,dt,dd,text")) {
    const style = getComputedStyle(element);
    const colour = element instanceof SVGElement ? style.fill : style.color;
    const [a, b] = [light(colour), light(ground(element))].sort((a, b) => b - a);
    if ((a + 0.05) / (b + 0.05) < 4.5) faint.add(`${element.tagName}.${element.className?.baseVal ?? element.className}: ${colour}`);
  }
  return [...faint];
})()"#;

/// Opens `page` in all four looks, and keeps pictures of them.
#[track_caller]
fn look_at(page: &Path, name: &str) {
    let mut chromium = Chromium::start();
    let folder = artefacts("pages");
    for (width, dark) in [(1280, false), (1280, true), (400, false), (400, true)] {
        chromium.resize(width, dark);
        let loaded = chromium.open(page);
        let theme = if dark { "dark" } else { "light" };
        let look = format!("{name}-{width}-{theme}");
        assert_eq!(loaded.complaints, [""; 0], "{look}");
        let own = |url: &String| {
            *url == format!("file://{}", page.display()) || url.starts_with("about:")
        };
        assert!(own(&loaded.requests[0]), "{:?}", loaded.requests);
        assert!(loaded.requests.iter().all(own), "{look}: {:?}", loaded.requests);
        chromium.screenshot(&folder.join(format!("{look}.png")));
        assert_eq!(chromium.evaluate(FLAWS), json!([]), "{look}");
        assert_eq!(chromium.evaluate(FAINT), json!([]), "{look}");
    }
}

/// The newest run as a page.
#[track_caller]
fn page(sandbox: &Sandbox) -> PathBuf {
    sandbox.says(&["report", "--format", "html", "-o", "page.html"]);
    sandbox.work().join("page.html")
}

#[test]
fn a_timed_run_with_everything() {
    let sandbox = Sandbox::new();
    let document = "
version: 1
experiments:
  fork:
    sides: { base: debian:bookworm, patched: debian:trixie, 'tuned': { kernel: debian:bookworm, sysctl: { kernel.a: 1 } } }
    workloads: [fork-exit, hackbench, { pipe-roundtrip: { bytes: [1, 4096] } }]
";
    let script = "
noise: 0.03
operations: 60
values: {fork-exit: 150000, hackbench: 4.2e7, pipe-roundtrip: 1200}
sides: {patched: {factor: {fork-exit: 1.25, hackbench: 0.8}}, tuned: {factor: {pipe-roundtrip: 2.4}}}
boots:
- {side: patched, block: 3, boot-failure: {class: silent-hang, title: nothing for 60 s}}";
    sandbox.run_document(document, script, &[]).reports(&["regression"]);
    let page = page(&sandbox);
    look_at(&page, "timed");
    let text = fs::read_to_string(&page).unwrap_or_default();
    for part in ["single operations", "over time", "dropped: patched", "class=\"cards\""] {
        assert!(text.contains(part), "no {part}");
    }
}

#[test]
fn a_run_of_few_pairs_and_names_that_attack() {
    let sandbox = Sandbox::new();
    let script = "
noise: 0.3
sides: {b: {facts: {release: '</style><script>alert(1)</script><img src=http://127.0.0.1:9/x>'}}}
boots:
- {side: b, block: 1, console: ['<svg onload=console.error(1)>'], boot-failure: {class: panic, title: \"<img src=x onerror=console.error(2)>\"}}";
    sandbox.ad_hoc(script, &[]);
    look_at(&page(&sandbox), "hostile");
}

#[test]
fn a_run_in_which_nothing_came_of_anything() {
    let sandbox = Sandbox::new();
    let script = "boots: [{boot-failure: {class: panic, title: 'Kernel panic - not syncing: x'}}]";
    sandbox.ad_hoc(script, &[]);
    look_at(&page(&sandbox), "nothing");
}

/// As the analysis of profiles has it among its fixtures.
#[test]
fn an_exact_run_with_functions() {
    let stored = Path::new(env!("CARGO_MANIFEST_DIR"))
        .join("../orchestrator/tests/fixtures/profile/fork-exit");
    let sandbox = Sandbox::new();
    let stored = stored.display().to_string();
    let page = ["report", &stored, "--format", "html", "-o", "page.html"];
    assert!(sandbox.says(&page).code.is_some());
    look_at(&sandbox.work().join("page.html"), "exact");
}

#[test]
fn hundreds_of_series_stay_a_page() {
    let sandbox = Sandbox::new();
    let sizes: Vec<String> = (1..=300).map(|size| size.to_string()).collect();
    let sweep = format!("pipe-roundtrip:bytes={}", sizes.join("+"));
    let mut run = sandbox.fake("{noise: 0.02}", &AD_HOC[..4]);
    let _ = Said::by(run.args(["--quick", "--seed", "7", "-w", &sweep]));
    let page = page(&sandbox);
    let bytes = fs::metadata(&page).map_or(0, |page| page.len());
    assert!((100_000..1_500_000).contains(&bytes), "{bytes} bytes");
    look_at(&page, "many");
}

/// Without this nobody would know whether the others can fail.
#[test]
fn what_is_wrong_with_a_page_is_seen() {
    let sandbox = Sandbox::new();
    sandbox.write(
        "bad.html",
        "<!DOCTYPE html><title>t</title><p style=\"color:#ccc;width:2000px\">faint</p>\n\
         <svg id=\"empty\" width=\"0\" height=\"0\"></svg>\n\
         <svg id=\"texts\" width=\"200\" height=\"50\"><text x=\"10\" y=\"20\">one</text>\
         <text x=\"12\" y=\"20\">two</text><text x=\"190\" y=\"40\">sticks out</text></svg>\n\
         <img src=\"http://127.0.0.1:9/x\"><script>console.error('said');nothing()</script>",
    );
    let mut chromium = Chromium::start();
    chromium.resize(400, false);
    let loaded = chromium.open(&sandbox.work().join("bad.html"));
    let has = |list: &[String], part: &str| list.iter().any(|line| line.contains(part));
    assert!(has(&loaded.requests, "127.0.0.1:9"), "{loaded:?}");
    assert!(has(&loaded.complaints, "said"), "{loaded:?}");
    assert!(has(&loaded.complaints, "nothing is not defined"), "{loaded:?}");
    let flaws = chromium.evaluate(FLAWS).to_string();
    for flaw in ["empty is 0 x 0", "lies over", "sticks out", "not named", "wider than the window"]
    {
        assert!(flaws.contains(flaw), "{flaws}");
    }
    assert!(chromium.evaluate(FAINT).to_string().contains("P."), "faint text");
}
