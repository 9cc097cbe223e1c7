#!/bin/bash
echo fast > work.txt
