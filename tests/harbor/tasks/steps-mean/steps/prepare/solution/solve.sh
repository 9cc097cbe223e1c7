#!/bin/bash
cp input.txt prepared.txt
