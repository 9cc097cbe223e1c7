FROM timesheet-base
ENV DEMO_INSTANCE="one of three"
WORKDIR /app
