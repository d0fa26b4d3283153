//! What a branch began with.

use super::Repository;
use crate::fault::Failure;

/// Where a branch left what it is based on.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Upstream {
    /// The commit that both have.
    pub commit: String,
    /// A branch or tag.
    pub name: String,
}

impl Repository {
    /// The merge base of `tip` with its upstream: the one that the branch is set to follow if `tip` is
    /// `HEAD`; else, of the usual main branches and the newest tag before it, the nearest.
    ///
    /// # Errors
    /// If git fails.
    pub fn upstream(&self, tip: &str) -> Result<Option<Upstream>, Failure> {
        let set = ["rev-parse", "--abbrev-ref", "--symbolic-full-name", "@{upstream}"];
        if tip == "HEAD"
            && let Ok(name) = self.text("read the upstream", set)
            && let Some(found) = self.merge_base(tip, name.trim())?
        {
            return Ok(Some(found));
        }
        let mut nearest: Option<(u64, Upstream)> = None;
        for name in self.main_branches(tip)? {
            let Some(found) = self.merge_base(tip, &name)? else { continue };
            let range = format!("{}..{tip}", found.commit);
            let count = self.text("count commits", ["rev-list", "--count", &range, "--"])?;
            let count = count.trim().parse().unwrap_or(u64::MAX);
            if nearest.as_ref().is_none_or(|(least, _)| count < *least) {
                nearest = Some((count, found));
            }
        }
        Ok(nearest.map(|(_, found)| found))
    }

    /// Names of branches that others work on, apart from the one that is checked out, and of the
    /// newest release before `tip`.
    fn main_branches(&self, tip: &str) -> Result<Vec<String>, Failure> {
        let own = self.text("read HEAD", ["symbolic-ref", "--quiet", "--short", "HEAD"]);
        let own = own.unwrap_or_default().trim().to_owned();
        let usual = ["origin/HEAD", "origin/master", "origin/main", "master", "main"];
        let mut names = Vec::new();
        for name in usual.into_iter().filter(|name| *name != own) {
            if self.commit(name)?.is_some() {
                names.push(name.to_owned());
            }
        }
        let release = ["describe", "--tags", "--abbrev=0", "--match", "v[0-9]*", tip];
        if let Ok(tag) = self.text("find a tag", release) {
            names.push(tag.trim().to_owned());
        }
        Ok(names)
    }

    fn merge_base(&self, tip: &str, name: &str) -> Result<Option<Upstream>, Failure> {
        let Ok(commit) = self.text("compare branches", ["merge-base", tip, name]) else {
            return Ok(None);
        };
        let commit = commit.lines().next().unwrap_or_default().to_owned();
        Ok((!commit.is_empty()).then(|| Upstream { commit, name: name.to_owned() }))
    }
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::super::testing::{commit, put, repository, run};
    use super::*;

    /// main: v6.1.9 - one - two; topic off one, with a commit of its own.
    fn branches(dir: &std::path::Path) -> (Repository, String) {
        let tree = dir.join("linux");
        fs::create_dir(&tree).unwrap();
        repository(&tree);
        put(&tree, "a", "1");
        let one = commit(&tree, "one");
        put(&tree, "a", "2");
        commit(&tree, "two");
        run(&tree, &["checkout", "--quiet", "-b", "topic", &one]);
        put(&tree, "b", "1");
        commit(&tree, "topic");
        (Repository::find(&tree, &dir.join("store")).unwrap().unwrap(), one)
    }

    #[test]
    fn the_nearest_of_main_branch_and_release_is_where_a_branch_began() {
        let dir = tempfile::tempdir().unwrap();
        let (found, one) = branches(dir.path());
        let upstream = found.upstream("HEAD").unwrap().unwrap();
        assert_eq!(upstream, Upstream { commit: one, name: "main".to_owned() });
        // On the main branch itself there is the release only.
        run(&found.top, &["checkout", "--quiet", "main"]);
        assert_eq!(found.upstream("HEAD").unwrap().unwrap().name, "v6.1.9");
    }

    #[test]
    fn what_a_branch_is_set_to_follow_comes_first() {
        let dir = tempfile::tempdir().unwrap();
        let (found, _) = branches(dir.path());
        run(&found.top, &["branch", "--quiet", "stable", "v6.1.9"]);
        run(&found.top, &["branch", "--quiet", "--set-upstream-to=stable"]);
        let upstream = found.upstream("HEAD").unwrap().unwrap();
        assert_eq!(upstream.name, "stable");
        assert_eq!(found.name_of(&upstream.commit), "v6.1.9");
    }

    #[test]
    fn names_near_to_a_slip_are_found() {
        let dir = tempfile::tempdir().unwrap();
        let (found, _) = branches(dir.path());
        assert_eq!(found.commit("v6.1.8").unwrap(), None);
        assert_eq!(found.near("v6.1.8").unwrap(), ["v6.1.9"]);
        assert_eq!(found.commit("--all").unwrap(), None);
    }
}
