// A guest as Zig builds one: a growing heap, a hash map, sorting, text and numbers.
// guest.wasm is what Zig 0.15.2 makes of it:
//
//     zig build-exe guest.zig -target wasm32-freestanding -O ReleaseSmall -fno-entry -rdynamic --stack 16384
const std = @import("std");

fn less(_: void, a: []const u8, b: []const u8) bool {
    return std.mem.lessThan(u8, a, b);
}

export fn run(n: u32) i64 {
    return work(n) catch -1;
}

fn work(n: u32) !i64 {
    var arena = std.heap.ArenaAllocator.init(std.heap.wasm_allocator);
    defer arena.deinit();
    const a = arena.allocator();
    var count = std.StringHashMap(u64).init(a);
    for (0..n) |i| {
        for (0..i % 9 + 1) |k| {
            const x = @as(f64, @floatFromInt(k)) / 3 + @as(f64, @floatFromInt(i));
            const text = try std.fmt.allocPrint(a, "{d}:{d:.3}", .{ k, x });
            const entry = try count.getOrPutValue(text, 0);
            entry.value_ptr.* += i * k + @as(u64, @intFromFloat(x));
        }
    }
    var keys: std.ArrayList([]const u8) = .empty;
    var each = count.keyIterator();
    while (each.next()) |key| try keys.append(a, key.*);
    std.mem.sort([]const u8, keys.items, {}, less);
    var sum: i64 = 0;
    for (keys.items) |key| {
        sum = sum *% 31 +% @as(i64, @intCast(count.get(key).?));
        for (key) |c| sum = sum *% 31 +% c;
    }
    return sum;
}
