//! Checks that the top-level modules of each crate use each other without cycles.
//!
//! A crate's root may use all modules and re-export their items, and tests may use anything: neither counts. A path
//! through a re-export counts as a path to the module that defines the item.

mod source;
mod tokens;

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};

use serde_json::Value;

use self::source::{ModuleDeclaration, SourceParts};
use crate::architecture::{cargo, root};

#[test]
fn top_level_modules_have_no_cycles() {
    let metadata: Value =
        serde_json::from_str(&cargo(&["metadata", "--no-deps", "--format-version", "1"])).unwrap();
    let (mut modules, mut report) = (0, String::new());
    for package in metadata["packages"].as_array().unwrap() {
        for target in package["targets"].as_array().unwrap() {
            let is_product = |kind: &Value| matches!(kind.as_str(), Some("lib" | "bin"));
            if !target["kind"].as_array().unwrap().iter().any(is_product) {
                continue;
            }
            let krate = Crate::read(Path::new(target["src_path"].as_str().unwrap()));
            modules += krate.modules.len();
            for cycle in krate.cycles() {
                report += &krate.describe(&cycle);
            }
        }
    }
    assert!(modules > 250, "only {modules} modules were looked at");
    assert!(report.is_empty(), "cycles between modules:\n{report}");
}

/// Top-level modules of a crate, and the uses between them.
#[derive(Debug, Default)]
struct Crate {
    modules: BTreeSet<String>,
    /// Modules that define the names in the crate's root.
    root_names: BTreeMap<String, String>,
    /// Uses of other modules, by using and used module: file and path.
    uses: BTreeMap<(String, String), BTreeSet<(PathBuf, String)>>,
}

impl Crate {
    fn read(root_file: &Path) -> Self {
        let mut krate = Self::default();
        let found = SourceParts::read(&std::fs::read_to_string(root_file).unwrap(), 0);
        krate.modules = found.declared.iter().map(|module| module.name.clone()).collect();
        for path in &found.imported {
            let path = match path.first().map(String::as_str) {
                Some("crate" | "self") => &path[1..],
                _ => path,
            };
            // The last part is the name in the root.
            if let [module, .., name] = path
                && krate.modules.contains(module)
            {
                krate.root_names.insert(name.clone(), module.clone());
            }
        }
        let folder = root_file.parent().unwrap();
        for module in &found.declared {
            krate.follow(&module.name, folder, module, 1);
        }
        krate
    }

    /// Reads the file of a module, and those of its submodules.
    fn follow(&mut self, top: &str, folder: &Path, module: &ModuleDeclaration, depth: usize) {
        let file = match &module.path {
            Some(path) => folder.join(path),
            None => folder.join(format!("{}.rs", module.name)),
        };
        let text =
            std::fs::read_to_string(&file).unwrap_or_else(|error| panic!("{}: {error}", file.display()));
        let found = SourceParts::read(&text, depth);
        for path in found.paths {
            self.add(top, &file, &path);
        }
        let inner = file.with_extension("");
        for module in &found.declared {
            self.follow(top, &inner, module, depth + 1);
        }
    }

    /// Adds a path from the crate's root.
    fn add(&mut self, top: &str, file: &Path, path: &[String]) {
        let Some(first) = path.first() else { return };
        let used = match self.modules.contains(first) {
            true => Some(first),
            false => self.root_names.get(first),
        };
        if let Some(used) = used.filter(|used| *used != top) {
            let file = file.strip_prefix(root()).unwrap_or(file).to_owned();
            self.uses.entry((top.to_owned(), used.clone())).or_default().insert((file, path.join("::")));
        }
    }

    /// Returns the strongly connected components of more than one module.
    fn cycles(&self) -> BTreeSet<BTreeSet<String>> {
        let reached = |from: &String| {
            let (mut seen, mut left) = (BTreeSet::new(), vec![from]);
            while let Some(module) = left.pop() {
                let used = self.uses.keys().filter(|(user, _)| user == module).map(|(_, used)| used);
                left.extend(used.filter(|used| seen.insert((*used).clone())));
            }
            seen
        };
        let reached: BTreeMap<_, _> = self.modules.iter().map(|module| (module, reached(module))).collect();
        let component = |module: &String| {
            let both = reached[module].iter().filter(|other| reached[other].contains(module));
            both.cloned().collect::<BTreeSet<_>>()
        };
        self.modules.iter().map(component).filter(|component| component.len() > 1).collect()
    }

    fn describe(&self, cycle: &BTreeSet<String>) -> String {
        let mut text = format!("{cycle:?}\n");
        for ((user, used), places) in &self.uses {
            if cycle.contains(user) && cycle.contains(used) {
                for (file, path) in places {
                    text += &format!("  {user} uses {used}: {} has `{path}`\n", file.display());
                }
            }
        }
        text
    }
}

#[test]
fn cycles_are_components_of_more_than_one_module() {
    let mut krate = Crate {
        modules: ["a", "b", "c", "d", "e"].map(str::to_owned).into(),
        root_names: BTreeMap::from([("Name".to_owned(), "a".to_owned())]),
        ..Crate::default()
    };
    let mut add = |user: &str, path: &str| {
        let path: Vec<_> = path.split("::").map(str::to_owned).collect();
        krate.add(user, Path::new("x.rs"), &path);
    };
    add("a", "b::X");
    add("b", "c");
    add("b", "b::Own");
    add("d", "e");
    add("a", "Unknown");
    assert_eq!(krate.cycles(), BTreeSet::new());
    // A use through a re-export.
    krate.add("c", Path::new("c.rs"), &["Name".to_owned()]);
    let cycle: BTreeSet<_> = ["a", "b", "c"].map(str::to_owned).into();
    assert_eq!(krate.cycles(), BTreeSet::from([cycle.clone()]));
    assert!(krate.describe(&cycle).contains("c uses a: c.rs has `Name`"), "{}", krate.describe(&cycle));
}
