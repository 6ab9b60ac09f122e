//! The operators' key: its location, its creation, and the tokens that are signed with it.
//!
//! A process that can read the key can act as an operator, and so can a process that can open the
//! unix socket. The key is therefore in a folder that only the user of the gateway can read. A
//! command of the same user, or of root, finds the key without an option. One key serves all
//! gateways of a user.

use std::fs::{self, DirBuilder};
use std::hash::{BuildHasher, RandomState};
use std::io;
use std::os::unix::fs::DirBuilderExt;
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use bywash_token::operator::{Operator, OperatorKeys, sign};
use bywash_token::{Secret, Secrets, UnixTime};
use ring::rand::{SecureRandom, SystemRandom};

use crate::failure::Failure;
use crate::replace::create;

const FILE: &str = "operators.key";
/// The runtime folder of the system service, which root uses as well.
const SERVICE: &str = "/run/bywash";

/// Returns the path at which `bywash run` keeps the key if the configuration does not set one.
/// Returns `None` if no environment variable names a folder for it.
pub fn own() -> Option<PathBuf> {
    own_of(&|name| std::env::var_os(name).map(PathBuf::from), is_root())
}

fn own_of(variable: &dyn Fn(&str) -> Option<PathBuf>, is_root: bool) -> Option<PathBuf> {
    let set = |name: &str| variable(name).filter(|folder| folder.is_absolute());
    // systemd may list several folders; the first is the service's own.
    let first = |list: PathBuf| {
        let list = list.into_os_string().into_string().ok()?;
        list.split(':').next().map(PathBuf::from)
    };
    let service = || variable("RUNTIME_DIRECTORY").and_then(first).filter(|one| one.is_absolute());
    let root = || is_root.then(|| PathBuf::from(SERVICE));
    let session = || set("XDG_RUNTIME_DIR").map(|folder| folder.join("bywash"));
    let home = || set("HOME").map(|home| home.join(".local/state/bywash"));
    service().or_else(root).or_else(session).or_else(home).map(|folder| folder.join(FILE))
}

/// Returns the path of the key that a command uses: the first default path at which a file exists.
fn found() -> Option<PathBuf> {
    let all = [own(), Some(Path::new(SERVICE).join(FILE))];
    all.into_iter().flatten().find(|path| path.exists())
}

fn is_root() -> bool {
    bywash_files::own_user().is_ok_and(|user| user == 0)
}

/// Returns the random bytes of a new key.
///
/// # Errors
/// If the system has no random bytes.
pub fn draw() -> Result<Secret, Failure> {
    let mut bytes = [0; 32];
    let drawn = SystemRandom::new().fill(&mut bytes);
    drawn.map_err(|_| Failure::running("the system provides no random bytes"))?;
    Ok(Secret::from_bytes(bytes))
}

/// Creates an operators' key at `path` if no file exists there.
///
/// # Errors
/// If the key cannot be created, or if the existing file is not a valid key.
pub fn ensure(path: &Path) -> Result<(), String> {
    match path.try_exists() {
        Ok(true) => return read(path).map(drop),
        Ok(false) => {}
        Err(error) => return Err(error.to_string()),
    }
    let secret = draw().map_err(|_| "the system provides no random bytes")?;
    let message = |error: io::Error| error.to_string();
    if let Some(folder) = path.parent() {
        DirBuilder::new().recursive(true).mode(0o700).create(folder).map_err(message)?;
    }
    // The key is first written under another name, which is then linked to the final one. So
    // another process that reads the key finds all of it, and one that creates a key at the same
    // time does not overwrite it.
    let beside = path.with_extension(format!(
        "key.{}-{:08x}",
        std::process::id(),
        RandomState::new().hash_one(0)
    ));
    create(&beside, &Secrets::fresh(secret).to_text()).map_err(message)?;
    let linked = fs::hard_link(&beside, path);
    let _ = fs::remove_file(&beside);
    match linked {
        Err(error) if error.kind() == io::ErrorKind::AlreadyExists => read(path).map(drop),
        linked => linked.map_err(message),
    }
}

fn read(path: &Path) -> Result<OperatorKeys, String> {
    let text = bywash_files::own_secret(path).map_err(|why| why.to_string())?;
    let secrets = Secrets::parse(&text).map_err(|why| why.to_string())?;
    Ok(OperatorKeys::new(&secrets))
}

/// An operators' key and the path that it was read from.
pub struct Key {
    path: PathBuf,
    keys: OperatorKeys,
}

/// Reads the key from the path `named`, or from the default path. Returns `None` if `named` is
/// `None` and no default path has a key.
///
/// # Errors
/// If the key cannot be read or is not valid.
pub fn key(named: Option<&Path>) -> Result<Option<Key>, Failure> {
    let Some(path) = named.map(Path::to_owned).or_else(found) else { return Ok(None) };
    let wrong = |why| {
        Failure::running(format!("the operators' key {} cannot be used: {why}", path.display()))
    };
    let keys = read(&path).map_err(wrong)?;
    Ok(Some(Key { path, keys }))
}

impl Key {
    /// Signs a token for the operator `name`, valid for `lasts`. The operator may take decisions if
    /// `decides` is true, and otherwise may only read.
    ///
    /// # Errors
    /// If the name is not valid.
    pub fn token(&self, name: &str, decides: bool, lasts: Duration) -> Result<String, Failure> {
        let operator = Operator::new(name, decides).ok_or_else(|| {
            Failure::usage("the name of an operator is a line of 1 to 200 characters")
        })?;
        let until = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default() + lasts;
        let until = UnixTime::from_millis(u64::try_from(until.as_millis()).unwrap_or(u64::MAX));
        Ok(sign(&self.keys, &operator, until))
    }

    /// Returns a random nonce. A command sends it to a gateway and asks for a proof that the
    /// gateway has this key.
    ///
    /// # Errors
    /// If the system has no random bytes.
    pub fn nonce() -> Result<String, Failure> {
        let mut bytes = [0; 16];
        let drawn = SystemRandom::new().fill(&mut bytes);
        drawn.map_err(|_| Failure::running("the system provides no random bytes"))?;
        Ok(format!("{:032x}", u128::from_be_bytes(bytes)))
    }

    /// Returns whether `proof`, the answer to `nonce`, shows that the gateway at `address` has this
    /// key.
    pub fn is_proof(&self, nonce: &str, address: &str, proof: &str) -> bool {
        self.keys.is_proof(nonce, address, proof)
    }

    /// Returns the path that the key was read from.
    pub fn path(&self) -> &Path {
        &self.path
    }
}

/// Returns the login name, or a placeholder if it is unknown.
pub fn user() -> String {
    author(None).unwrap_or_else(|_| "an operator".into())
}

/// Returns the author of a decision: `named` if it is given, otherwise the login name, otherwise
/// the system's name of the user that runs this process.
///
/// # Errors
/// If none of them is known, as in a container whose user has no name.
pub fn author(named: Option<&str>) -> Result<String, Failure> {
    let variable = |name| std::env::var(name).ok().filter(|name| !name.is_empty());
    let logged_in = || variable("USER").or_else(|| variable("LOGNAME")).or_else(process_user);
    named.map(str::to_owned).or_else(logged_in).ok_or_else(|| {
        Failure::usage("the author of the decision is unknown, as USER is not set: add --by NAME")
    })
}

/// Returns the system's name of the user that runs this process; `None` if the user has no name.
fn process_user() -> Option<String> {
    let id = bywash_files::own_user().ok()?;
    let users = bywash_files::text(Path::new("/etc/passwd"), LARGEST).ok()?;
    user_of(&users, id)
}

/// The maximum number of bytes of `/etc/passwd` that are read.
const LARGEST: usize = 4 << 20;

/// Returns the first name in `users` of the user with the ID `id`. `users` is text in the format of
/// passwd(5), in which name, password and number come first.
fn user_of(users: &str, id: u32) -> Option<String> {
    let id = id.to_string();
    let name = |line: &str| {
        let mut fields = line.split(':');
        let name = fields.next().filter(|name| !name.is_empty())?;
        (fields.nth(1) == Some(&id)).then(|| name.to_owned())
    };
    users.lines().find_map(name)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_user_has_the_name_that_the_system_has_for_it() {
        let users =
            "root:x:0:0:root:/root:/bin/sh\nbroken\n::7:\nana:x:1000:1000::/home/ana:/bin/sh\n";
        assert_eq!(user_of(users, 0).as_deref(), Some("root"));
        assert_eq!(user_of(users, 1000).as_deref(), Some("ana"));
        assert_eq!(user_of(users, 7), None);
        assert_eq!(user_of(users, 100), None);
    }

    #[test]
    fn the_key_is_where_only_its_user_reads() {
        let variable = |set: &'static [(&str, &str)]| {
            move |name: &str| {
                set.iter().find(|(other, _)| *other == name).map(|(_, value)| PathBuf::from(value))
            }
        };
        let own =
            |set, is_root| own_of(&variable(set), is_root).map(|path| path.display().to_string());
        let all = &[
            ("RUNTIME_DIRECTORY", "/run/b"),
            ("XDG_RUNTIME_DIR", "/run/user/7"),
            ("HOME", "/home/a"),
        ];
        assert_eq!(own(all, false).as_deref(), Some("/run/b/operators.key"));
        assert_eq!(own(&all[1..], false).as_deref(), Some("/run/user/7/bywash/operators.key"));
        assert_eq!(own(&all[1..], true).as_deref(), Some("/run/bywash/operators.key"));
        assert_eq!(
            own(&all[2..], false).as_deref(),
            Some("/home/a/.local/state/bywash/operators.key")
        );
        assert_eq!(own(&[("HOME", "here")], false), None);
        let several = &[("RUNTIME_DIRECTORY", "/run/b:/run/c")];
        assert_eq!(own(several, false).as_deref(), Some("/run/b/operators.key"));
    }

    #[test]
    fn a_key_is_made_once_and_what_is_none_stays() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("deep/down/operators.key");
        ensure(&path).unwrap();
        let first = fs::read(&path).unwrap();
        let mode = std::os::unix::fs::MetadataExt::mode(&fs::metadata(&path).unwrap()) & 0o777;
        assert_eq!(mode, 0o600);
        ensure(&path).unwrap();
        assert_eq!(fs::read(&path).unwrap(), first);
        assert_eq!(
            fs::read_dir(path.parent().unwrap()).unwrap().count(),
            1,
            "nothing is left beside"
        );
        fs::write(&path, "no key").unwrap();
        assert!(ensure(&path).is_err());
        assert_eq!(fs::read(&path).unwrap(), b"no key");
        assert!(key(Some(&path)).is_err());
        fs::write(&path, first).unwrap();
        let key = key(Some(&path)).unwrap().unwrap();
        let token = |name| key.token(name, true, Duration::from_secs(9));
        assert!(token("ana").unwrap().starts_with("v1."));
        assert!(token("a\nb").is_err());
    }
}
