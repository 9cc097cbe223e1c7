#!/bin/bash
echo solved > state.txt
