//! List prices of AWS in us-east-1, without free tiers, discounts and taxes.
//!
//! These are AWS's published on-demand prices as of the date below, not read from an account: compare them with the named
//! pages before you rely on them.

/// Month of these prices.
pub const PRICES_AS_OF: &str = "2026-11";
/// Region of these prices.
pub const REGION: &str = "us-east-1";

/// One list price.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Price {
    /// The billed usage.
    pub usage: Usage,
    /// Service, as named on the bill.
    pub service: &'static str,
    /// Billed unit.
    pub unit: &'static str,
    /// Price of `per` units in USD.
    pub usd: f64,
    /// Units that the price is for.
    pub per: f64,
    /// The page that publishes it.
    pub page: &'static str,
}

impl Price {
    /// Cost of `units` units, in USD.
    pub fn cost(&self, units: f64) -> f64 {
        units * self.usd / self.per
    }
}

/// Usage that AWS bills.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, serde::Serialize, serde::Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Usage {
    /// Invocations of functions.
    LambdaRequests,
    /// Memory held for a time by functions on arm64, in GB-seconds.
    LambdaGbSecondsArm64,
    /// The same on x86-64.
    LambdaGbSecondsX86,
    /// Bytes streamed by functions beyond the first 6 MB of an answer, in GB.
    LambdaStreamedGb,
    /// Requests to queues; each begun 64 KB of payload is one.
    SqsRequests,
    /// Write request units of on-demand tables.
    DynamoDbWriteUnits,
    /// Read request units of on-demand tables.
    DynamoDbReadUnits,
    /// Storage of tables, in GB-months.
    DynamoDbGbMonths,
    /// Point-in-time recovery of tables, in GB-months.
    DynamoDbBackupGbMonths,
    /// PUT, COPY, POST and LIST requests.
    S3Writes,
    /// GET and all other requests.
    S3Reads,
    /// Storage of objects, in GB-months.
    S3GbMonths,
    /// Requests through the HTTP API; each begun 512 KB is one.
    ApiRequests,
    /// Requests to keys.
    KmsRequests,
    /// Keys, in key-months.
    KmsKeyMonths,
    /// Requests for secrets.
    SecretRequests,
    /// Secrets, in secret-months.
    SecretMonths,
    /// Logs taken in, in GB.
    LogGb,
    /// Logs kept, in GB-months.
    LogGbMonths,
    /// Metrics of our own, in metric-months; one that is not written is not counted.
    MetricMonths,
    /// Alarms, in alarm-months.
    AlarmMonths,
    /// Dashboards, in dashboard-months.
    DashboardMonths,
    /// Invocations by schedules.
    ScheduleInvocations,
    /// Notifications published.
    SnsRequests,
    /// HTTPS requests to the page.
    CdnRequests,
    /// Bytes from the page's network to the internet, in GB.
    CdnGb,
    /// Bytes from the region to the internet, in GB: questions to models, answers of the API.
    TransferOutGb,
}

const fn price(
    usage: Usage,
    service: &'static str,
    unit: &'static str,
    usd: f64,
    per: f64,
    page: &'static str,
) -> Price {
    Price { usage, service, unit, usd, per, page }
}

const MILLION: f64 = 1_000_000.0;
const LAMBDA: &str = "aws.amazon.com/lambda/pricing";
const SQS: &str = "aws.amazon.com/sqs/pricing";
const DYNAMODB: &str = "aws.amazon.com/dynamodb/pricing/on-demand";
const S3: &str = "aws.amazon.com/s3/pricing";
const API: &str = "aws.amazon.com/api-gateway/pricing";
const KMS: &str = "aws.amazon.com/kms/pricing";
const SECRETS: &str = "aws.amazon.com/secrets-manager/pricing";
const CLOUDWATCH: &str = "aws.amazon.com/cloudwatch/pricing";
const EVENTBRIDGE: &str = "aws.amazon.com/eventbridge/pricing";
const SNS: &str = "aws.amazon.com/sns/pricing";
const CLOUDFRONT: &str = "aws.amazon.com/cloudfront/pricing";
const EC2: &str = "aws.amazon.com/ec2/pricing/on-demand";

/// All prices, in the order of the tables. For tiered prices the first, most expensive tier.
pub const PRICES: [Price; 27] = [
    price(Usage::LambdaRequests, "Lambda", "requests", 0.20, MILLION, LAMBDA),
    price(Usage::LambdaGbSecondsArm64, "Lambda", "GB-seconds, arm64", 0.000_013_333_4, 1.0, LAMBDA),
    price(Usage::LambdaGbSecondsX86, "Lambda", "GB-seconds, x86-64", 0.000_016_666_7, 1.0, LAMBDA),
    price(Usage::LambdaStreamedGb, "Lambda", "GB streamed beyond 6 MB", 0.008, 1.0, LAMBDA),
    price(Usage::SqsRequests, "SQS", "requests of 64 KB", 0.40, MILLION, SQS),
    price(Usage::DynamoDbWriteUnits, "DynamoDB", "write request units", 0.625, MILLION, DYNAMODB),
    price(Usage::DynamoDbReadUnits, "DynamoDB", "read request units", 0.125, MILLION, DYNAMODB),
    price(Usage::DynamoDbGbMonths, "DynamoDB", "GB-months", 0.25, 1.0, DYNAMODB),
    price(Usage::DynamoDbBackupGbMonths, "DynamoDB", "GB-months of recovery", 0.20, 1.0, DYNAMODB),
    price(Usage::S3Writes, "S3", "PUT, POST, LIST requests", 0.005, 1_000.0, S3),
    price(Usage::S3Reads, "S3", "GET requests", 0.000_4, 1_000.0, S3),
    price(Usage::S3GbMonths, "S3", "GB-months", 0.023, 1.0, S3),
    price(Usage::ApiRequests, "API Gateway", "requests of 512 KB", 1.00, MILLION, API),
    price(Usage::KmsRequests, "KMS", "requests", 0.03, 10_000.0, KMS),
    price(Usage::KmsKeyMonths, "KMS", "keys, months", 1.00, 1.0, KMS),
    price(Usage::SecretRequests, "Secrets Manager", "requests", 0.05, 10_000.0, SECRETS),
    price(Usage::SecretMonths, "Secrets Manager", "secrets, months", 0.40, 1.0, SECRETS),
    price(Usage::LogGb, "CloudWatch", "GB of logs", 0.50, 1.0, CLOUDWATCH),
    price(Usage::LogGbMonths, "CloudWatch", "GB-months of logs", 0.03, 1.0, CLOUDWATCH),
    price(Usage::MetricMonths, "CloudWatch", "metrics, months", 0.30, 1.0, CLOUDWATCH),
    price(Usage::AlarmMonths, "CloudWatch", "metrics under alarms, months", 0.10, 1.0, CLOUDWATCH),
    price(Usage::DashboardMonths, "CloudWatch", "dashboards, months", 3.00, 1.0, CLOUDWATCH),
    price(Usage::ScheduleInvocations, "EventBridge Scheduler", "invocations", 1.00, MILLION, EVENTBRIDGE),
    price(Usage::SnsRequests, "SNS", "requests of 64 KB", 0.50, MILLION, SNS),
    price(Usage::CdnRequests, "CloudFront", "HTTPS requests", 0.01, 10_000.0, CLOUDFRONT),
    price(Usage::CdnGb, "CloudFront", "GB to the internet", 0.085, 1.0, CLOUDFRONT),
    price(Usage::TransferOutGb, "Data transfer", "GB to the internet", 0.09, 1.0, EC2),
];

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;

    fn price_of(usage: Usage) -> Price {
        *PRICES.iter().find(|price| price.usage == usage).unwrap()
    }

    #[test]
    fn every_price_is_there_once() {
        let all: BTreeSet<Usage> = PRICES.iter().map(|price| price.usage).collect();
        assert_eq!(all.len(), PRICES.len());
        assert!(all.contains(&Usage::TransferOutGb) && all.contains(&Usage::LambdaRequests));
    }

    /// Amounts computed by hand from AWS's prices per unit.
    #[test]
    fn costs_match_amounts_computed_by_hand() {
        for (what, units, usd) in [
            // 3 million invocations at $0.20 a million.
            (Usage::LambdaRequests, 3_000_000.0, 0.60),
            // AWS prints $0.0000133334 a GB-second: 1,204 invocations of 30 s at 512 MB are 18,060 GB-s.
            (Usage::LambdaGbSecondsArm64, 18_060.0, 0.240_801),
            (Usage::LambdaGbSecondsX86, 18_060.0, 0.301_001),
            // A queue polled by one poller every 20 s for 30 days: 129,600 requests.
            (Usage::SqsRequests, 129_600.0, 0.051_84),
            (Usage::DynamoDbWriteUnits, 96_256.0, 0.060_16),
            (Usage::DynamoDbReadUnits, 8_000_000.0, 1.00),
            // $0.005 a thousand.
            (Usage::S3Writes, 12_032.0, 0.060_16),
            (Usage::S3Reads, 12_032.0, 0.004_812_8),
            (Usage::ApiRequests, 500.0, 0.000_5),
            (Usage::KmsRequests, 76.0, 0.000_228),
            (Usage::CdnRequests, 10_000.0, 0.01),
            (Usage::TransferOutGb, 0.1, 0.009),
        ] {
            let cost = price_of(what).cost(units);
            assert!((cost - usd).abs() < 1e-6, "{what:?}: {cost} instead of {usd}");
        }
    }
}
