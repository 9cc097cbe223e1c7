#!/bin/bash
echo out > /app/out.txt
echo other > /app/other.txt
mkdir -p /app/data/folder
echo kept > /app/data/folder/kept.txt
echo left out > /app/data/scratch.tmp
echo report > /logs/artifacts/report.txt
