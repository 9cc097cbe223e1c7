#!/bin/bash
touch begun
sleep 300
touch done
