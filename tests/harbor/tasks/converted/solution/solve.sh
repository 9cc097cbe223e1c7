#!/bin/bash
echo "<$TEST_DIR>" > /app/value.txt
