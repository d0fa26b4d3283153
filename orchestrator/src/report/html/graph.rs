//! Flame graphs, each a document of its own: names of one do not meet those of another.

use super::super::markup::{quoted, safe};
use super::Beside;
use crate::report::FlameGraph;
use crate::text::escape;

/// Title and key stand in the page; what else is drawn on the ground follows the page's colours. The
/// graph would keep its state in its address, which it has none of here.
const PRELUDE: &str = "<style>:root{color-scheme:light dark}html{overflow:hidden}body{margin:0}svg{display:block;width:100%}\
    #title,#subtitle{display:none}svg>rect{fill:none}svg>text{fill:CanvasText}\
    #search{opacity:.8}#frames rect{stroke:#8888;stroke-width:.4px}</style>\
    <script>History.prototype.replaceState=()=>{}</script>";

/// Where the graph itself would begin to live, and what lets it begin when it has a width, and follow.
const BEGIN: &str = " onload=\"init(evt)\"";
const BEGIN_LATER: &str = "<script>let begun;const begin=()=>{\
    if(!document.querySelector('svg').getBoundingClientRect().width)return;\
    if(begun)dispatchEvent(new Event('resize'));else{begun=true;init()}};\
    begin();new ResizeObserver(begin).observe(document.documentElement)</script>";

/// All of them, or why there are none.
pub(super) fn section(beside: &Beside) -> String {
    let mut html = String::new();
    for graph in &beside.graphs {
        html += &one(graph);
    }
    if let Some(why) = &beside.graphless {
        html += &format!("<p class=\"dim\">no flame graph: {}</p>\n", safe(why));
    }
    if html.is_empty() { html } else { format!("<section>\n{html}</section>\n") }
}

fn one(graph: &FlameGraph) -> String {
    let title = safe(&graph.title);
    let safe_lines: Vec<String> = graph.svg.lines().map(escape).collect();
    let svg = safe_lines.join("\n");
    // What precedes the graph is for files of their own.
    let svg = svg.find("<svg").map_or("", |start| &svg[start..]).replacen(BEGIN, "", 1);
    format!(
        "<h2>Call chains, {title}</h2>\n<p class=\"dim\">{}. A click enlarges.</p>\n\
         <iframe sandbox=\"allow-scripts allow-modals\" title=\"{title}\" height=\"{}\" srcdoc=\"{}\"></iframe>\n",
        safe(&graph.key),
        height(&svg),
        quoted(&format!("<!DOCTYPE html>{PRELUDE}{svg}{BEGIN_LATER}"))
    )
}

/// As the graph says.
fn height(svg: &str) -> u32 {
    let said = svg.split_once(" height=\"").and_then(|(_, rest)| rest.split_once('"'));
    said.and_then(|(height, _)| height.parse().ok()).unwrap_or(600)
}
