# SPDX-License-Identifier: MIT
# Nix: nix-build contrib/packaging/default.nix, in the source tree.
{ pkgs ? import <nixpkgs> { } }:

pkgs.stdenv.mkDerivation {
  pname = "semlock";
  version = "1.0.0";
  src = ../..;
  nativeBuildInputs = with pkgs; [ autoreconfHook pkg-config perl ];
  buildInputs = with pkgs; [ curl libpq ];
  configureFlags = [ "--with-network" "--without-redis" "--without-ssh" ]; # scripts with /usr/bin/python3
  nativeCheckInputs = with pkgs; [ bats util-linux procps ];
  doCheck = true;
  checkFlags = [ "TESTS=tests/run/exit-status.bats" ];
  enableParallelBuilding = true;
  meta = {
    description = "Run a command while holding a lock";
    license = pkgs.lib.licenses.mit;
    platforms = pkgs.lib.platforms.linux;
    mainProgram = "semlock";
  };
}
