//! Database connections of an application, for tests.

use std::net::SocketAddr;
use std::sync::mpsc::{Receiver, channel};
use std::thread;

use mysql_async::prelude::Queryable;
use mysql_async::{Conn, OptsBuilder};
use tokio_postgres::NoTls;

use crate::client::PATIENCE;
use crate::site::Product;

/// The way in which a query ended.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum End {
    Done,
    Cancelled,
    Broken(String),
    /// The result of [`Connection::count`].
    Count(i64),
}

/// A connection of an application, which runs queries one after another.
pub(crate) struct Connection {
    pub(crate) kind: Product,
    pub(crate) number: u64,
    queries: tokio::sync::mpsc::UnboundedSender<String>,
    ends: Receiver<End>,
}

/// Returns a query that takes longer than any wait of a test.
pub(crate) const fn long(kind: Product) -> &'static str {
    match kind {
        Product::Postgres => "SELECT pg_sleep(20)",
        Product::MariaDb => "SELECT SLEEP(20)",
    }
}

impl Connection {
    pub(crate) fn new(kind: Product) -> Self {
        Self::of_user(kind, "shop")
    }

    pub(crate) fn of_user(kind: Product, user: &'static str) -> Self {
        let address = kind.address().unwrap();
        let (queries, mut waiting) = tokio::sync::mpsc::unbounded_channel::<String>();
        let (ended, ends) = channel();
        let (numbered, number) = channel();
        thread::spawn(move || {
            let runtime =
                tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
            runtime.block_on(async move {
                let mut session = Session::open(kind, address, user).await;
                numbered.send(session.number().await).unwrap();
                while let Some(query) = waiting.recv().await {
                    let end = match query.strip_prefix(COUNT) {
                        Some(query) => session.count(query).await,
                        None => session.run(&query).await,
                    };
                    let _ = ended.send(end);
                }
            });
        });
        let number = number.recv_timeout(PATIENCE).unwrap();
        Self { kind, number, queries, ends }
    }

    pub(crate) fn begin(&self, query: &str) {
        self.queries.send(query.to_owned()).unwrap();
    }

    pub(crate) fn end(&self) -> End {
        self.ends.recv_timeout(PATIENCE).expect("the query ends")
    }

    pub(crate) fn run(&self, query: &str) -> End {
        self.begin(query);
        self.end()
    }

    /// Begins a query, and waits until the database reports that it runs. `watch` is another
    /// connection, which asks the database for the report. Two states of MariaDB do not count.
    /// MariaDB answers a statement before it removes the statement from its list, and it lists the
    /// next statement before the text is known.
    pub(crate) fn begin_seen(&self, query: &str, watch: &Self) {
        let number = self.number;
        let (is_idle, is_seen) = match self.kind {
            Product::Postgres => {
                let here = format!("SELECT count(*) FROM pg_stat_activity WHERE pid = {number}");
                (format!("{here} AND state LIKE 'idle%'"), format!("{here} AND state = 'active'"))
            }
            Product::MariaDb => {
                let list = "information_schema.processlist";
                let here = format!("SELECT COUNT(*) FROM {list} WHERE id = {number}");
                let has_text = "command = 'Query' AND info IS NOT NULL";
                (format!("{here} AND command = 'Sleep'"), format!("{here} AND {has_text}"))
            }
        };
        watch.until_one(&is_idle);
        self.begin(query);
        watch.until_one(&is_seen);
    }

    /// Runs a query that counts rows, again and again until the count is one.
    pub(crate) fn until_one(&self, query: &str) {
        for _ in 0..2000 {
            if self.count(query) == 1 {
                return;
            }
            thread::sleep(std::time::Duration::from_millis(2));
        }
        panic!("never one: {query}");
    }

    /// Runs a query that counts rows, and returns the count.
    pub(crate) fn count(&self, query: &str) -> i64 {
        self.queries.send(format!("{COUNT}{query}")).unwrap();
        match self.end() {
            End::Count(count) => count,
            other => panic!("{query}: {other:?}"),
        }
    }
}

/// The prefix that marks a query whose result is wanted.
const COUNT: &str = "?";

enum Session {
    Postgres(tokio_postgres::Client),
    MariaDb(Conn),
}

impl Session {
    async fn open(kind: Product, address: SocketAddr, user: &str) -> Self {
        match kind {
            Product::Postgres => {
                let (ip, port) = (address.ip(), address.port());
                let parameters =
                    format!("host={ip} port={port} user={user} password=lab dbname=shop");
                let (client, connection) =
                    tokio_postgres::connect(&parameters, NoTls).await.unwrap();
                tokio::spawn(connection);
                Self::Postgres(client)
            }
            Product::MariaDb => {
                let options = OptsBuilder::default()
                    .ip_or_hostname(address.ip().to_string())
                    .tcp_port(address.port())
                    .prefer_socket(false)
                    .user(Some(user))
                    .pass(Some("lab"))
                    .db_name(Some("shop"));
                Self::MariaDb(Conn::new(options).await.unwrap())
            }
        }
    }

    async fn number(&mut self) -> u64 {
        match self {
            Self::Postgres(client) => {
                let row = client.query_one("SELECT pg_backend_pid()", &[]).await.unwrap();
                u64::try_from(row.get::<_, i32>(0)).unwrap()
            }
            Self::MariaDb(connection) => {
                connection.query_first("SELECT CONNECTION_ID()").await.unwrap().unwrap()
            }
        }
    }

    async fn count(&mut self, query: &str) -> End {
        let count = match self {
            Self::Postgres(client) => {
                client.query_one(query, &[]).await.map(|row| row.get(0)).map_err(|e| e.to_string())
            }
            Self::MariaDb(connection) => connection
                .query_first(query)
                .await
                .map(|count| count.unwrap())
                .map_err(|e| e.to_string()),
        };
        count.map_or_else(End::Broken, End::Count)
    }

    async fn run(&mut self, query: &str) -> End {
        match self {
            Self::Postgres(client) => match client.batch_execute(query).await {
                Ok(()) => End::Done,
                Err(error) => match error.code().map(tokio_postgres::error::SqlState::code) {
                    Some("57014") => End::Cancelled,
                    _ => End::Broken(error.to_string()),
                },
            },
            Self::MariaDb(connection) => match connection.query::<mysql_async::Row, _>(query).await
            {
                // An interrupted SLEEP succeeds and returns 1, so the statement was cancelled.
                Ok(rows)
                    if rows.iter().any(|row| row.get::<i64, _>(0) == Some(1))
                        && query.contains("SLEEP") =>
                {
                    End::Cancelled
                }
                Ok(_) => End::Done,
                Err(mysql_async::Error::Server(error)) if error.code == 1317 => End::Cancelled,
                Err(error) => End::Broken(error.to_string()),
            },
        }
    }
}
