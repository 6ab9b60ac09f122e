//! Checks a configuration that `advise` or `init` proposes, and writes it to a new file.

use std::fs::{File, Permissions};
use std::io::{self, Write};
use std::os::unix::fs::PermissionsExt;
use std::path::Path;

use bywash_command::Failure;
use bywash_command::streams::say;
use bywash_config::Config;

/// Refuses an output file that cannot be written: `out` is a folder, its folder does not exist, or
/// the file exists and `force` is not set.
pub(crate) fn prepare(out: &Path, force: bool) -> Result<(), Failure> {
    if out.is_dir() {
        return Err(refused(out, "it is a folder; name a file in it"));
    }
    let folder = out.parent().filter(|folder| !folder.as_os_str().is_empty());
    if folder.is_some_and(|folder| !folder.is_dir()) {
        return Err(refused(out, "its folder does not exist"));
    }
    if !force && out.symlink_metadata().is_ok() {
        return Err(refused(out, "it exists already; name another file, or add --force"));
    }
    Ok(())
}

/// Returns the failure for an `--out` that is refused for the reason `why`.
pub(crate) fn refused(out: &Path, why: &str) -> Failure {
    Failure::usage(format!("--out {}: {why}", out.display()))
}

/// Checks the configuration that a command proposes for an application at `upstream`. A proposal
/// with a problem is a failure.
pub(crate) fn checked(toml: &str, upstream: &str) -> Result<(), Failure> {
    let Err(problems) = Config::parse(toml, "the proposed configuration") else { return Ok(()) };
    let is_upstream = !upstream.starts_with("http://") && !upstream.starts_with("https://");
    if is_upstream {
        return Err(Failure::usage("--upstream takes http://HOST:PORT or https://HOST:PORT"));
    }
    Err(Failure::running(format!(
        "the proposed configuration is wrong:\n{}",
        problems.render(false)
    )))
}

/// Writes the file `out`. An existing file is overwritten only with `force`.
pub(crate) fn write(out: &Path, toml: &str, force: bool) -> Result<(), Failure> {
    // Without `force`, this also fails if another program has created the file since `prepare` was
    // called.
    let anew = || File::create_new(out).and_then(|mut file| file.write_all(toml.as_bytes()));
    let written = if force { replace_file(out, toml) } else { anew() };
    let wrong = |error| Failure::running(format!("cannot write {}: {error}", out.display()));
    written.map_err(wrong)?;
    say(format!("configuration: {}", out.display()));
    Ok(())
}

/// Replaces the file `out`. The old file stays in place until the new one is complete.
fn replace_file(out: &Path, toml: &str) -> io::Result<()> {
    // A symbolic link remains one, and its target is replaced. A path that is not a regular file
    // (`/dev/stdout`) is written to directly.
    let out = &out.canonicalize().unwrap_or_else(|_| out.to_owned());
    if out.metadata().is_ok_and(|there| !there.is_file()) {
        return File::options().write(true).open(out)?.write_all(toml.as_bytes());
    }
    let folder = out.parent().filter(|folder| !folder.as_os_str().is_empty());
    let usual = Permissions::from_mode(0o666);
    let mut builder = tempfile::Builder::new();
    let mut file = builder.permissions(usual).tempfile_in(folder.unwrap_or(Path::new(".")))?;
    file.write_all(toml.as_bytes())?;
    file.as_file().sync_all()?;
    file.persist(out)?;
    Ok(())
}
