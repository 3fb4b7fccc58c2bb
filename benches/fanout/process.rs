//! What a process costs: processor time by thread, and resident memory, as the system tells it.

use std::fs;

/// Processor time that the threads of a process have had so far.
#[derive(Clone, Debug, Default)]
pub struct Usage {
    /// Thread, its name, nanoseconds on a core (user and system).
    threads: Vec<(u32, String, u64)>,
}

impl Usage {
    pub fn of(process: u32) -> Self {
        let mut threads = Vec::new();
        let Ok(entries) = fs::read_dir(format!("/proc/{process}/task")) else {
            return Self::default();
        };
        for entry in entries.flatten() {
            let path = entry.path();
            let Some(thread) = entry.file_name().to_str().and_then(|name| name.parse().ok()) else {
                continue;
            };
            let name = fs::read_to_string(path.join("comm")).unwrap_or_default();
            let spent = fs::read_to_string(path.join("schedstat")).unwrap_or_default();
            let spent = spent.split(' ').next().and_then(|ns| ns.parse().ok()).unwrap_or(0);
            threads.push((thread, name.trim().to_owned(), spent));
        }
        Self { threads }
    }

    /// What the threads whose names start so have had since `before`, in nanoseconds.
    pub fn since(&self, before: &Self, prefix: &str) -> u64 {
        let mut sum = 0;
        for (thread, name, spent) in &self.threads {
            if name.starts_with(prefix) {
                let earlier = before.threads.iter().find(|(other, ..)| other == thread);
                sum += spent.saturating_sub(earlier.map_or(0, |(.., spent)| *spent));
            }
        }
        sum
    }
}

/// Resident memory of a process, in bytes.
pub fn resident(process: u32) -> u64 {
    let status = fs::read_to_string(format!("/proc/{process}/status")).unwrap_or_default();
    let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:"));
    let kib = line.and_then(|line| line.trim().trim_end_matches(" kB").parse::<u64>().ok());
    kib.unwrap_or(0) * 1024
}
