//! The address of the database.

use std::path::{Path, PathBuf};
use std::str::FromStr;
use std::{env, fmt, fs, io};

use mysql::{Opts, OptsBuilder};

/// A kind of database, and how to connect to it.
#[derive(Clone)]
pub enum DatabaseUrl {
    /// A SQLite file, opened in this process. `None` stands for a temporary file.
    Sqlite(Option<PathBuf>),
    /// A PostgreSQL server.
    Postgres(Box<tokio_postgres::Config>),
    /// A MariaDB server.
    MariaDb(Box<Opts>),
}

/// The reason why a text is not the address of a database.
#[derive(Debug, thiserror::Error)]
pub enum DatabaseUrlError {
    /// The scheme is not that of a supported database.
    #[error("write postgres://…, mysql://…, or the path of a SQLite file, not {0}")]
    Scheme(String),
    /// The path of the SQLite file is empty.
    #[error("the path of the database file is empty")]
    Empty,
    /// The address is not valid for PostgreSQL.
    #[error("not a PostgreSQL address: {0}")]
    Postgres(tokio_postgres::Error),
    /// The address is not valid for MariaDB.
    #[error("not a MariaDB address: {0}")]
    MariaDb(mysql::UrlError),
    /// The address has no database name. Without this check, the error would appear only at the
    /// first statement.
    #[error("the address names no database: append /DATABASE")]
    NoDatabase,
    /// The file that should contain the password cannot be read.
    #[error("cannot read the password in {}: {cause}", path.display())]
    Password {
        /// The path of the file that should contain the password.
        path: PathBuf,
        /// The error of the operating system.
        cause: io::Error,
    },
    /// A password was given for a SQLite file.
    #[error("a SQLite database has no password: omit the password")]
    NoPassword,
}

impl FromStr for DatabaseUrl {
    type Err = DatabaseUrlError;

    fn from_str(text: &str) -> Result<Self, DatabaseUrlError> {
        match text.split_once("://") {
            Some(("postgres" | "postgresql", _)) => {
                let config: tokio_postgres::Config =
                    text.parse().map_err(DatabaseUrlError::Postgres)?;
                config.get_dbname().ok_or(DatabaseUrlError::NoDatabase)?;
                Ok(Self::Postgres(Box::new(config)))
            }
            Some(("mysql", _)) => {
                let opts = Opts::from_url(text).map_err(DatabaseUrlError::MariaDb)?;
                opts.get_db_name()
                    .filter(|name| !name.is_empty())
                    .ok_or(DatabaseUrlError::NoDatabase)?;
                Ok(Self::MariaDb(Box::new(opts)))
            }
            // Only the scheme is shown, because the rest may contain a password.
            Some((scheme, _)) => Err(DatabaseUrlError::Scheme(format!("{scheme}://…"))),
            None if text.is_empty() => Err(DatabaseUrlError::Empty),
            None => Ok(Self::Sqlite(Some(text.into()))),
        }
    }
}

impl DatabaseUrl {
    /// Returns this address with a password from elsewhere: from the first line of `file` if one is
    /// given, or else from the environment `variable` if it is set. If neither is given, the
    /// address keeps its own password. A SQLite address ignores the variable, which may be set for
    /// other programs. Fails if `file` cannot be read, or if it is given for a SQLite address.
    pub fn with_password_from(
        self,
        file: Option<&Path>,
        variable: &str,
    ) -> Result<Self, DatabaseUrlError> {
        if let Some(path) = file {
            let text = fs::read_to_string(path)
                .map_err(|cause| DatabaseUrlError::Password { path: path.to_owned(), cause })?;
            return self.with_password(text.lines().next().unwrap_or_default());
        }
        match (self, env::var(variable)) {
            (url @ Self::Sqlite(_), _) | (url, Err(_)) => Ok(url),
            (url, Ok(password)) => url.with_password(&password),
        }
    }

    /// Returns this address with `password` instead of its own. Fails for a SQLite address.
    pub fn with_password(self, password: &str) -> Result<Self, DatabaseUrlError> {
        match self {
            Self::Sqlite(_) => Err(DatabaseUrlError::NoPassword),
            Self::Postgres(mut config) => {
                config.password(password);
                Ok(Self::Postgres(config))
            }
            Self::MariaDb(opts) => {
                let opts = OptsBuilder::from_opts(*opts).pass(Some(password));
                Ok(Self::MariaDb(Box::new(opts.into())))
            }
        }
    }
}

/// Shows only the kind of a database server, because the rest of its address may contain a
/// password. Shows the path of a SQLite file.
impl fmt::Debug for DatabaseUrl {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Sqlite(path) => f.debug_tuple("Sqlite").field(path).finish(),
            Self::Postgres(_) => f.write_str("Postgres(…)"),
            Self::MariaDb(_) => f.write_str("MariaDb(…)"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_address_says_which_database_it_is() {
        let url = |text: &str| text.parse::<DatabaseUrl>();
        assert!(matches!(url("books.db"), Ok(DatabaseUrl::Sqlite(Some(_)))));
        assert!(matches!(
            url("postgres://shop:lab@127.0.0.1:5432/shop"),
            Ok(DatabaseUrl::Postgres(_))
        ));
        assert!(matches!(url("mysql://shop:lab@127.0.0.1:3306/shop"), Ok(DatabaseUrl::MariaDb(_))));
    }

    #[test]
    fn what_is_no_address_is_refused_without_its_password() {
        for wrong in [
            "",
            "oracle://shop:lab@host/db",
            "postgres://shop:lab@127.0.0.1:5432",
            "mysql://shop:lab@127.0.0.1:3306/",
            "mysql://shop:lab@127.0.0.1:port/db",
            "postgres://shop:lab@127.0.0.1:port/db",
        ] {
            let error = wrong.parse::<DatabaseUrl>().expect_err(wrong).to_string();
            assert!(!error.contains("lab"), "{error}");
        }
    }

    #[test]
    fn a_password_is_not_shown_and_sqlite_has_none() {
        let url: DatabaseUrl = "mysql://shop:lab@127.0.0.1:3306/shop".parse().unwrap();
        assert_eq!(format!("{url:?}"), "MariaDb(…)");
        let url = url.with_password("other").unwrap();
        let DatabaseUrl::MariaDb(opts) = url else { panic!("another kind") };
        assert_eq!(opts.get_pass(), Some("other"));
        assert!(DatabaseUrl::Sqlite(None).with_password("x").is_err());
    }
}
