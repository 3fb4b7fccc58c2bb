//! The house's own rules: layers, where unsafe code may be, what the top level holds.

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};

/// Modules in their order: each names only those before it.
const LAYERS: [&str; 15] = [
    "clock", "market", "worker", "limiter", "feed", "venue", "ingest", "board", "ledger",
    "gateway", "config", "ops", "app", "cli", "main",
];

/// What the liftable parts may use of the crate besides themselves.
const LIFTABLE: [&str; 2] = ["worker", "limiter"];

fn root() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR"))
}

/// Every source file below `src`, with its module's name.
fn sources() -> Vec<(String, PathBuf, String)> {
    fn walk(folder: &Path, files: &mut Vec<PathBuf>) {
        for entry in fs::read_dir(folder).unwrap() {
            let path = entry.unwrap().path();
            if path.is_dir() {
                walk(&path, files);
            } else if path.extension().is_some_and(|extension| extension == "rs") {
                files.push(path);
            }
        }
    }
    let mut files = Vec::new();
    walk(&root().join("src"), &mut files);
    files
        .into_iter()
        .map(|path| {
            let below = path.strip_prefix(root().join("src")).unwrap();
            let first = below.iter().next().unwrap().to_str().unwrap();
            let module = first.trim_end_matches(".rs").to_owned();
            let text = fs::read_to_string(&path).unwrap();
            (module, below.to_owned(), text)
        })
        .collect()
}

/// The code of a file: its comments taken off.
fn code(text: &str) -> String {
    text.lines().map(|line| line.split("//").next().unwrap_or("")).collect::<Vec<_>>().join("\n")
}

/// The modules of this crate that a piece of code names by `crate::`.
fn named(code: &str) -> BTreeSet<String> {
    let mut modules = BTreeSet::new();
    for (place, _) in code.match_indices("crate::") {
        if code[..place].ends_with(|c: char| c.is_alphanumeric() || c == '_') {
            continue;
        }
        let rest = &code[place + "crate::".len()..];
        if let Some(list) = rest.strip_prefix('{') {
            let list = &list[..list.find('}').unwrap_or(list.len())];
            for name in list.split(',') {
                let name = name.trim().split("::").next().unwrap_or("");
                modules.insert(name.to_owned());
            }
        } else {
            let end = rest.find(|c: char| !c.is_alphanumeric() && c != '_').unwrap_or(rest.len());
            modules.insert(rest[..end].to_owned());
        }
    }
    modules
}

#[test]
fn a_module_names_only_modules_before_it() {
    let mut faults = Vec::new();
    for (module, file, text) in sources() {
        if module == "lib" {
            continue;
        }
        let Some(own) = LAYERS.iter().position(|layer| *layer == module) else {
            faults.push(format!("{}: not in the list of layers", file.display()));
            continue;
        };
        for name in named(&code(&text)) {
            let Some(other) = LAYERS.iter().position(|layer| *layer == name) else { continue };
            if other > own {
                faults.push(format!("{}: names {name}, which is above it", file.display()));
            }
            if LIFTABLE.contains(&module.as_str()) && name != module && name != "clock" {
                faults.push(format!("{}: names {name}; it is to be liftable", file.display()));
            }
        }
    }
    assert!(faults.is_empty(), "{}", faults.join("\n"));
}

#[test]
fn the_check_of_layers_sees_every_way_to_name_a_module() {
    let names =
        named("use crate::app::run; use crate::{cli, ops::Admin}; xcrate::no; crate::venue");
    let names: Vec<_> = names.iter().map(String::as_str).collect();
    assert_eq!(names, ["app", "cli", "ops", "venue"]);
}

#[test]
fn unsafe_code_lives_in_three_parts_of_the_workers() {
    const PARTS: [&str; 3] = ["cell", "fence", "slots"];
    let opens = ["unsafe {", "unsafe fn", "unsafe impl", "unsafe extern", "unsafe trait"];
    let elsewhere: Vec<String> = sources()
        .into_iter()
        .filter(|(_, _, text)| {
            let code = code(text);
            opens.iter().any(|open| code.contains(open))
        })
        .map(|(_, file, _)| file.display().to_string())
        .filter(|file| {
            let part = file.strip_prefix("worker/").and_then(|rest| rest.split(['/', '.']).next());
            !part.is_some_and(|part| PARTS.contains(&part))
        })
        .collect();
    assert!(elsewhere.is_empty(), "{elsewhere:?}");
}

#[test]
fn time_is_read_in_one_place() {
    let readers: Vec<String> = sources()
        .into_iter()
        .filter(|(module, _, text)| {
            let code = code(text);
            // Test code may measure, and the liftable workers wait on the system's own clock.
            let code = code.split("#[cfg(test)]").next().unwrap_or("").to_owned();
            module != "clock"
                && (code.contains("Instant::now(") || code.contains("SystemTime::now("))
        })
        .map(|(_, file, _)| file.display().to_string())
        .collect();
    assert!(readers.is_empty(), "{readers:?}");
}

#[test]
fn the_top_level_holds_what_it_should() {
    const KNOWN: [&str; 21] = [
        ".ci",
        ".config",
        ".git",
        ".gitignore",
        "ARCHITECTURE.md",
        "CHANGELOG.md",
        "Cargo.lock",
        "Cargo.toml",
        "LICENSE",
        "README.md",
        "benches",
        "clippy.toml",
        "config",
        "feeds",
        "fuzz",
        "rust-toolchain.toml",
        "rustfmt.toml",
        "src",
        "target",
        "tests",
        "proptest-regressions",
    ];
    let unknown: Vec<_> = fs::read_dir(root())
        .unwrap()
        .map(|entry| entry.unwrap().file_name().into_string().unwrap())
        .filter(|name| !KNOWN.contains(&name.as_str()))
        .collect();
    assert!(unknown.is_empty(), "{unknown:?}");
}
