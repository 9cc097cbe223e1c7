#!/bin/bash
echo set up >> setup.txt
