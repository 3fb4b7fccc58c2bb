//! The `tidegate` program; everything it does lives in the library.

fn main() -> anyhow::Result<()> {
    use tidegate::config::{Settings, Source, VENUES};
    tracing_subscriber::fmt().with_writer(std::io::stderr).init();
    let plan = match std::env::args().nth(1) {
        None => tidegate::app::Plan {
            settings: Settings::embedded(),
            source: Source::embedded(VENUES),
            content: None,
            hint: true,
        },
        Some(path) => {
            let source = Source::file(path, VENUES);
            let content = source.read()?;
            tidegate::app::Plan {
                settings: source.parse_with_files(&content)?,
                source,
                content: Some(content),
                hint: false,
            }
        }
    };
    tidegate::app::run(plan)
}
