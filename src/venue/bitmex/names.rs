//! The names of BitMEX's tables and kinds of execution.

use crate::venue::class::{Class, Unused};

/// What a table carries.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Table {
    Quotes,
    Trades,
    Executions,
    /// Of no use here.
    Other(Class),
}

/// What the table called `name` carries.
pub(super) fn table(name: &[u8]) -> Option<Table> {
    use Class::Unused as Not;
    Some(Table::Other(match name {
        b"quote" => return Some(Table::Quotes),
        b"trade" => return Some(Table::Trades),
        b"execution" => return Some(Table::Executions),
        b"orderBookL2" | b"orderBookL2_25" | b"orderBook10" => Not(Unused::Depth),
        b"instrument" => Not(Unused::Ticker),
        b"liquidation" => Not(Unused::Liquidation),
        b"funding"
        | b"insurance"
        | b"settlement"
        | b"announcement"
        | b"chat"
        | b"connected"
        | b"publicNotifications" => Not(Unused::Reference),
        b"order" => Not(Unused::Order),
        b"position"
        | b"margin"
        | b"wallet"
        | b"transact"
        | b"affiliate"
        | b"privateNotifications" => Not(Unused::Account),
        _ if name.starts_with(b"quoteBin") || name.starts_with(b"tradeBin") => Not(Unused::Kline),
        _ => return None,
    }))
}

/// What an execution of a type is to the account's volume.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Execution {
    Trade,
    /// The venue's own doing.
    Calculated,
    /// A change of the order.
    Order,
    Unknown,
}

/// What the execution type `name` means.
pub(super) fn execution(name: &[u8]) -> Execution {
    match name {
        b"Trade" => Execution::Trade,
        b"Funding" | b"Settlement" | b"Delivery" | b"Liquidation" | b"Bankruptcy"
        | b"Insurance" | b"Rebalance" => Execution::Calculated,
        b"New"
        | b"Canceled"
        | b"Replaced"
        | b"Rejected"
        | b"Restated"
        | b"Suspended"
        | b"Released"
        | b"Expired"
        | b"AmendReject"
        | b"CancelReject"
        | b"PendingCancel"
        | b"PendingNew"
        | b"TriggeredOrActivatedBySystem"
        | b"TrialFill" => Execution::Order,
        _ => Execution::Unknown,
    }
}
