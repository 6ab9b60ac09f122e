//! The origins: widely used application servers, each with a small application that reflects how
//! the server understood a request. Their files are in `lab/origins`, and `scripts/origins`
//! installs them.

use super::program::Program;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use bywash_harness::sys;

/// A server to test as an origin, and how to start it.
#[derive(Debug, Clone, Copy)]
pub struct Origin {
    /// Name of the origin, for reports and for `--origins`.
    pub name: &'static str,
    /// The program to start. `{installed}` stands for the folder into which `scripts/origins` has
    /// installed the origins.
    program: &'static str,
    /// Arguments of the program. `{port}` stands for the listening port, and `{config}` for the
    /// path of the generated configuration.
    arguments: &'static [&'static str],
    /// Name of the configuration template in `lab/origins`, with the placeholders `@PORT@`, `@DIR@`
    /// and `@BACKEND@`; `None` if the program needs none.
    config: Option<&'static str>,
    /// The command that prints the version of the program.
    version: &'static [&'static str],
}

const PYTHON: &str = "{installed}/venv/bin/python";

const fn python(
    name: &'static str,
    program: &'static str,
    arguments: &'static [&'static str],
    version: &'static [&'static str],
) -> Origin {
    Origin { name, program, arguments, config: None, version }
}

const fn proxy(
    name: &'static str,
    program: &'static str,
    arguments: &'static [&'static str],
    config: &'static str,
    version: &'static [&'static str],
) -> Origin {
    Origin { name, program, arguments, config: Some(config), version }
}

/// All known origins.
pub const ORIGINS: [Origin; 13] = [
    proxy("nginx", "nginx", &["-c", "{config}"], "nginx.conf", &["nginx", "-v"]),
    proxy("apache", "apache2", &["-X", "-f", "{config}"], "apache.conf", &["apache2", "-v"]),
    proxy("haproxy", "haproxy", &["-db", "-f", "{config}"], "haproxy.cfg", &["haproxy", "-v"]),
    python(
        "gunicorn",
        "{installed}/venv/bin/gunicorn",
        &[
            "--bind=127.0.0.1:{port}",
            "--worker-class=gthread",
            "--threads=4",
            "--keep-alive=30",
            "--graceful-timeout=1",
            "--limit-request-line=0",
            "--limit-request-field_size=0",
            "wsgi:app",
        ],
        &["{installed}/venv/bin/gunicorn", "--version"],
    ),
    python(
        "uvicorn-h11",
        "{installed}/venv/bin/uvicorn",
        &["--host=127.0.0.1", "--port={port}", "--http=h11", "--log-level=error", "asgi:app"],
        &["{installed}/venv/bin/uvicorn", "--version"],
    ),
    python(
        "uvicorn-httptools",
        "{installed}/venv/bin/uvicorn",
        &["--host=127.0.0.1", "--port={port}", "--http=httptools", "--log-level=error", "asgi:app"],
        &["{installed}/venv/bin/uvicorn", "--version"],
    ),
    python(
        "aiohttp",
        PYTHON,
        &["aiohttp_origin.py", "{port}"],
        &[PYTHON, "-c", "import aiohttp; print('aiohttp', aiohttp.__version__)"],
    ),
    python(
        "tornado",
        PYTHON,
        &["tornado_origin.py", "{port}"],
        &[PYTHON, "-c", "import tornado; print('tornado', tornado.version)"],
    ),
    python(
        "waitress",
        "{installed}/venv/bin/waitress-serve",
        &["--listen=127.0.0.1:{port}", "wsgi:app"],
        &[
            PYTHON,
            "-c",
            "from importlib.metadata import version as v; print('waitress', v('waitress'))",
        ],
    ),
    Origin {
        name: "node",
        program: "node",
        arguments: &["node.js", "{port}"],
        config: None,
        version: &["node", "-p", "'Node ' + process.version"],
    },
    Origin {
        name: "go",
        program: "{installed}/go",
        arguments: &["{port}"],
        config: None,
        version: &["{installed}/go", "version"],
    },
    Origin {
        name: "hyper",
        program: "{installed}/hyper",
        arguments: &["{port}"],
        config: None,
        version: &["{installed}/hyper", "version"],
    },
    Origin {
        name: "puma",
        program: "puma",
        arguments: &["-e", "none", "-b", "tcp://127.0.0.1:{port}", "-t", "1:4", "puma.ru"],
        config: None,
        version: &["puma", "--version"],
    },
];

/// Paths and ports that origins need.
#[derive(Debug, Clone)]
pub struct OriginPaths {
    /// Absolute path of the folder `lab/origins`.
    pub sources: PathBuf,
    /// Absolute path of the folder into which `scripts/origins` has installed the origins.
    pub installed: PathBuf,
    /// Port of the reflector, to which proxies among the origins forward.
    pub backend: u16,
}

impl Origin {
    /// Returns the version that the origin prints; `None` if the origin is not installed.
    pub fn version(&self, paths: &OriginPaths) -> Option<String> {
        let (program, arguments) = self.version.split_first()?;
        let mut command = Command::new(fill(program, paths));
        command.args(arguments).stdin(Stdio::null());
        sys::tether(&mut command, None);
        let output = command.output().ok().filter(|output| output.status.success())?;
        let text = if output.stdout.is_empty() { output.stderr } else { output.stdout };
        Some(number_in(&String::from_utf8_lossy(&text)))
    }

    /// Starts the origin and waits until it accepts connections.
    pub fn start(&self, paths: &OriginPaths) -> io::Result<Program> {
        Program::start(self.name, |port, folder| {
            let config = folder.join("config");
            if let Some(template) = self.config {
                let text = fs::read_to_string(paths.sources.join(template))?;
                fs::write(&config, fill_config(&text, port, folder, paths.backend))?;
            }
            let mut command = Command::new(fill(self.program, paths));
            for argument in self.arguments {
                let argument = argument.replace("{port}", &port.to_string());
                command.arg(argument.replace("{config}", &config.display().to_string()));
            }
            command.current_dir(&paths.sources).env("PYTHONDONTWRITEBYTECODE", "1");
            command.env("PYTHONPATH", &paths.sources);
            Ok(command)
        })
    }
}

/// Returns the first word of `text` that looks like a version number.
fn number_in(text: &str) -> String {
    let looks = |word: &&str| word.contains('.') && word.contains(|c: char| c.is_ascii_digit());
    let word = text.split([' ', '/', '\n', '(', ')']).find(looks).unwrap_or(text);
    word.trim_start_matches(|c: char| !c.is_ascii_digit()).trim().to_owned()
}

fn fill(text: &str, paths: &OriginPaths) -> String {
    text.replace("{installed}", &paths.installed.display().to_string())
}

fn fill_config(text: &str, port: u16, folder: &Path, backend: u16) -> String {
    text.replace("@PORT@", &port.to_string())
        .replace("@DIR@", &folder.display().to_string())
        .replace("@BACKEND@", &backend.to_string())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_version_is_found_in_what_programs_say() {
        for (said, is) in [
            ("nginx version: nginx/1.22.1\n", "1.22.1"),
            ("Server version: Apache/2.4.71 (Debian)\nServer built: x", "2.4.71"),
            ("gunicorn (version 27.0.1)", "27.0.1"),
            ("Node v20.20.2", "20.20.2"),
            ("Go go1.26.8", "1.26.8"),
        ] {
            assert_eq!(number_in(said), is);
        }
    }
}
