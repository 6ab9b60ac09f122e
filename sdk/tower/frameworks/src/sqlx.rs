//! Leases of connections of a pool of sqlx. To use it, copy this file.

use bywash_tower::{DatabaseName, LeaseError, Leased, StopClient, Terminated, Token};
use sqlx::pool::PoolConnection;
use sqlx::{ColumnIndex, Database, Decode, Executor, IntoArguments, Pool, Type};

/// The statement that returns the number of a connection to PostgreSQL.
pub const POSTGRES: &str = "SELECT pg_backend_pid()::int8";
/// The statement that returns the number of a connection to MariaDB or MySQL.
pub const MARIADB: &str = "SELECT CAST(CONNECTION_ID() AS SIGNED)";

/// The reason why a query did not give its result.
#[derive(Debug, thiserror::Error)]
pub enum Failure {
    /// The request is over, or another client of the daemon has leased the connection.
    #[error(transparent)]
    Lease(#[from] LeaseError),
    /// The query has failed.
    #[error(transparent)]
    Database(#[from] sqlx::Error),
}

impl From<Terminated> for Failure {
    fn from(over: Terminated) -> Self {
        Self::Lease(over.into())
    }
}

/// Takes a connection from the pool and leases it for the request of `token`. `number` is
/// [`POSTGRES`] or [`MARIADB`]. If another client of the daemon has leased the connection, the
/// function takes another one, once.
pub async fn lease<DB>(
    stop_client: &StopClient,
    token: &Token,
    database: &DatabaseName,
    pool: &Pool<DB>,
    number: &'static str,
) -> Result<Leased<PoolConnection<DB>>, Failure>
where
    DB: Database,
    DB::Arguments: IntoArguments<DB>,
    for<'c> &'c mut DB::Connection: Executor<'c, Database = DB>,
    for<'r> i64: Decode<'r, DB> + Type<DB>,
    usize: ColumnIndex<DB::Row>,
{
    let attempt = async || {
        // A request that is over does not wait for the pool.
        token.checkpoint()?;
        let mut connection = pool.acquire().await?;
        let number = sqlx::query_scalar::<DB, i64>(number).fetch_one(&mut *connection).await?;
        // A connection that must not be reused is taken out of the pool and closed.
        let close = |connection: PoolConnection<DB>| drop(connection.detach());
        Ok(stop_client.lease(token, database, number.cast_unsigned(), connection, close).await?)
    };
    match attempt().await {
        Err(Failure::Lease(LeaseError::Taken)) => attempt().await,
        leased => leased,
    }
}
