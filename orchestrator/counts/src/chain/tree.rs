//! Every chain that was seen, as a tree.

/// Where chains begin: nobody's call.
pub(crate) const ROOT: u32 = 0;

/// A function in one chain.
#[derive(Clone, Debug, Default)]
pub(crate) struct Node {
    pub parent: u32,
    pub function: u32,
    /// Functions called from it, with their nodes.
    children: Vec<(u32, u32)>,
}

/// Nodes by number; parents come before their children.
#[derive(Debug)]
pub(crate) struct Tree(Vec<Node>);

impl Default for Tree {
    fn default() -> Self {
        Self(vec![Node::default()])
    }
}

impl Tree {
    /// The node of a function called from another one's.
    pub fn child(&mut self, parent: u32, function: u32) -> u32 {
        let children = &self.0[parent as usize].children;
        if let Some((_, child)) = children.iter().find(|(called, _)| *called == function) {
            return *child;
        }
        let child = u32::try_from(self.0.len()).unwrap_or(ROOT);
        self.0[parent as usize].children.push((function, child));
        self.0.push(Node { parent, function, children: Vec::new() });
        child
    }

    /// The node of another function called from the same one.
    pub fn sibling(&mut self, node: u32, function: u32) -> u32 {
        self.child(self.0[node as usize].parent, function)
    }

    /// Every node but the root, with its number.
    pub fn iter(&self) -> impl Iterator<Item = (u32, &Node)> {
        (0..).zip(&self.0).skip(1)
    }
}

/// What was executed in one context, by node.
#[derive(Clone, Debug, Default)]
pub(crate) struct NodeTally(Vec<(i64, u64)>);

impl NodeTally {
    /// Instructions more, or fewer, in the function itself.
    #[inline]
    pub fn add(&mut self, node: u32, instructions: i64, calls: u64) {
        let node = node as usize;
        if node >= self.0.len() {
            self.0.resize(node + 1 + node / 4, (0, 0));
        }
        self.0[node].0 += instructions;
        self.0[node].1 += calls;
    }

    /// Node, instructions and calls, where there are any.
    pub fn iter(&self) -> impl Iterator<Item = (u32, i64, u64)> + '_ {
        let all =
            (0..).zip(&self.0).map(|(node, (instructions, calls))| (node, *instructions, *calls));
        all.filter(|(_, instructions, calls)| (*instructions, *calls) != (0, 0))
    }
}
