clang-19 --target=wasm32 -std=c11 -O2 -ffreestanding -nostdlib \
    -Wl,--no-entry -Wl,-z,stack-size=8192 -Wl,--strip-all -o handler.wasm handler.c
python3 manifest.py handler.wasm handler.json demo-echo.wasm
