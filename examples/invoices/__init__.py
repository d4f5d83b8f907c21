"""An application that sells, collects money and writes letters, and survives the death of its processes."""
